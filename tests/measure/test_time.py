"""Times of the hand-made loop: the window is 3 steps, from 100 ms to 395 ms after its start."""

from pathlib import Path

import pytest

from harness.measure.values import Value
from tests.ledgers import span
from tests.measure.loops import at, figures, loop_cell

Figures = dict[str, Value]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    return figures(loop_cell(tmp_path_factory.mktemp("loop")))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("window_seconds", 0.295),
        ("warmup_steps_dropped", 1),
        ("step_seconds", 0.295 / 3),
        ("step_seconds_p50", 0.1),
        ("stage_seconds_p50[decode]", 0.040),
        ("stage_seconds_p95[decode]", 0.040),
        ("stage_seconds_p99[forward_backward]", 0.020),
        ("stage_seconds_mean[prefill]", 0.010),
        ("stage_share[decode]", 40 / 95),
        ("t_seq_seconds", 0.095),
        ("t_seq_part_seconds[rollout]", 0.055),
        ("t_seq_part_seconds[reward]", 0.010),
        ("t_seq_part_seconds[train]", 0.025),
        ("t_seq_part_seconds[sync]", 0.005),
        ("unattributed_share", 10 / 295),
        ("work_seconds", 3 * 0.095),
        ("pool_utilisation[cpu]", 285 / 295),
        ("period_seconds", 0.1),
        ("period_sequential_seconds", 0.095),
        ("period_overlapped_seconds", 0.065),
    ],
)
def test_time(found: Figures, name: str, expected: float) -> None:
    assert found[name].value == pytest.approx(expected, abs=1e-12), found[name]


def test_in_a_synchronous_loop_the_critical_path_is_all_the_work_up_to_its_last_step(found: Figures) -> None:
    assert found["critical_path_seconds"].value == pytest.approx(3 * 0.095 - 0.005)
    shares = [value.value for name, value in found.items() if name.startswith("critical_path_share[")]
    assert sum(share for share in shares if share is not None) == pytest.approx(1.0)


def test_shares_of_the_stages_close(found: Figures) -> None:
    shares = [value.value for name, value in found.items() if name.startswith("stage_share[")]
    assert sum(share for share in shares if share is not None) == pytest.approx(1.0)


def test_an_absent_stage_is_told_apart_from_one_without_spans(found: Figures) -> None:
    absent, silent = found["stage_seconds_p50[logprob_recompute]"], found["stage_seconds_p50[checkpoint]"]
    assert (absent.value, absent.absent, absent.reason) == (None, True, "the trainer scores in its own forward pass")
    assert (silent.value, silent.absent) == (None, False)
    assert silent.reason


def test_time_of_two_processes_that_overlap_is_covered_once(tmp_path: Path) -> None:
    beside = [span("decode", at(step, 65), at(step, 100), trace_id=f"gen-{step}", device="cuda:1") for step in range(4)]
    found = figures(loop_cell(tmp_path, spans=beside))
    assert found["unattributed_share"].value == 0.0
    assert found["work_seconds"].value == pytest.approx(3 * (0.095 + 0.035))
    assert found["output_tokens_per_second_in_stage"].denominator == pytest.approx(3 * (0.050 + 0.035))


@pytest.mark.parametrize("steps", [1, 2])
def test_a_run_with_nothing_after_its_warm_up_says_so(tmp_path: Path, steps: int) -> None:
    found = figures(loop_cell(tmp_path, steps=steps), warmup_steps=steps)
    for name in ("step_seconds", "output_tokens_per_second", "lag_p50", "ess_tokens", "cost_device_seconds"):
        assert found[name].value is None
        assert "warm-up" in str(found[name].reason), found[name]


def test_every_null_has_a_reason_and_every_value_its_evidence(found: Figures) -> None:
    for value in found.values():
        assert value.evidence
        assert (value.value is not None) or value.reason


def test_waiting_is_no_work(tmp_path: Path) -> None:
    waits = [span("queue_wait", at(step, 95), at(step, 100), trace_id=f"gen-{step}") for step in range(4)]
    found = figures(loop_cell(tmp_path, spans=waits))
    assert found["work_seconds"].value == pytest.approx(3 * 0.095)
    assert found["unattributed_share"].value == 0.0
    assert found["stage_seconds_p50[queue_wait]"].value == pytest.approx(0.005)


def test_watching_is_attributed_but_no_work_of_the_framework(tmp_path: Path) -> None:
    watching = [span("observation", at(step, 95), at(step, 100), trace_id=f"gen-{step}") for step in range(4)]
    found = figures(loop_cell(tmp_path, spans=watching))
    assert found["unattributed_share"].value == 0.0
    assert found["stage_seconds_p50[observation]"].value == pytest.approx(0.005)
    assert found["work_seconds"].value == pytest.approx(3 * 0.095)
    assert found["t_seq_seconds"].value == pytest.approx(0.095)
    assert "t_seq_part_seconds[other]" not in found


def test_a_loop_that_records_within_its_stages_says_so(found: Figures) -> None:
    assert found["stage_seconds_p50[observation]"].reason == "the loop writes its records itself, within its stages"


def test_a_cell_without_any_row_gives_reasons(tmp_path: Path) -> None:
    found = figures(loop_cell(tmp_path, steps=0))
    assert all(value.value is None or value.unit for value in found.values())
    assert found["step_seconds"].value is None


def test_a_term_of_t_seq_whose_stages_are_absent_is_absent_not_zero(found: Figures) -> None:
    term = found["t_seq_part_seconds[logp]"]
    assert (term.value, term.absent) == (None, True)
