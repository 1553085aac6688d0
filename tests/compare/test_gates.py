from pathlib import Path

import pytest

from harness.compare.gates import GATES, Gate, gate_of, weights_of
from harness.measure.api import catalogue
from harness.measure.values import Value
from tests.fakes import figures

KINDS = {kind.tag: kind for kind in catalogue()}


def test_the_weights_share_out_the_whole_level() -> None:
    assert sum(gate.weight for gate in GATES) == 1
    assert all(gate.why for gate in GATES)


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.measure)
def test_of_every_gate_it_is_known_which_way_is_worse(gate: Gate) -> None:
    assert KINDS[gate.measure].direction == "lower"
    assert "p50" not in gate.measure


def test_a_family_shares_its_weight() -> None:
    names = ["step_seconds", "t_seq_part_seconds[rollout]", "t_seq_part_seconds[train]", "memory_peak_bytes"]
    assert weights_of(names) == dict(zip(names, (0.5, 0.125, 0.125, 0.125), strict=True))


def test_of_memory_the_peak_over_all_phases_counts_alone() -> None:
    def gated(tag: str, variant: str) -> bool:
        return gate_of(Value(tag, 1.0, "u", "e", 1, variant=variant)) is not None

    assert gated("memory_peak_bytes", "")
    assert not gated("memory_peak_bytes", "rollout")
    assert gated("t_seq_part_seconds", "rollout")
    assert not gated("output_tokens_per_second", "")


def test_a_gate_of_a_cell_is_its_seconds_over_its_steps(tmp_path: Path) -> None:
    """On the fake loop's made-up clock: a run's total, and the stages behind it add up to the part."""
    found = figures(tmp_path)
    step, part = found["step_seconds"], found["t_seq_part_seconds[train]"]
    assert step.value == pytest.approx((step.numerator or 0) / step.n)
    stages = [
        found[f"stage_share[{stage}]"].numerator for stage in ("batch_assembly", "forward_backward", "optimizer_step")
    ]
    assert sum(stage or 0 for stage in stages) == pytest.approx((part.value or 0) * part.n)
