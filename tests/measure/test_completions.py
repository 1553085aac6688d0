"""Lengths, ends, stragglers and fates of the hand-made loop's completions."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.contract import LedgerWriter
from harness.measure.figures.stragglers import utilisations
from harness.measure.values import Value
from harness.theory.pipeline import straggler_utilisation
from tests.ledgers import rollout, span
from tests.measure.loops import LENGTHS, MS, at, figures, loop_cell

Figures = dict[str, Value]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    changes = {"stop_reason": ["eos", "eos", "stop", "length"]}
    return figures(loop_cell(tmp_path_factory.mktemp("loop"), changes))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("completion_length", 4.0),
        ("completion_length_p50", 4.0),
        ("completion_length_p95", 6.0),
        ("completion_length_max", 6.0),
        ("stop_reason_share[eos]", 0.5),
        ("stop_reason_share[length]", 0.25),
        ("stop_reason_share[stop]", 0.25),
        ("stop_reason_share[aborted]", 0.0),
        ("truncated_share", 0.25),
        ("infrastructure_error_share", 0.0),
        ("faults", 0.0),
        ("generated_tokens", 48.0),
        ("token_fates[generated]", 64.0),
        ("token_fates[trained]", 64.0),
        ("token_fates[dropped]", 0.0),
        ("token_fates[in_flight]", 0.0),
        ("token_closure_gap", 0.0),
        ("token_recount_gap", 0.0),
        ("straggler_utilisation_group", (50 / 60 + 90 / 100) / 2),
        ("straggler_utilisation_batch", 140 / 200),
        ("straggler_utilisation_tokens", sum(LENGTHS) / (4 * max(LENGTHS))),
        ("rollout_seconds_p50", 0.035),
        ("rollout_seconds_p95", 0.050),
        ("rollout_tail_ratio", 48.5 / 35),
    ],
)
def test_completions(found: Figures, name: str, expected: float) -> None:
    assert found[name].value == pytest.approx(expected), found[name]


def test_the_worked_example_of_stragglers() -> None:
    times = np.array([4, 4, 5, 5, 5, 6, 6, 20])
    assert utilisations(np.zeros(8, np.int64), times) == pytest.approx([55 / 160])
    assert round(straggler_utilisation(times.tolist()), 3) == 0.344


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0.001, 1e3)), min_size=1, max_size=40))
def test_utilisation_of_each_group_is_the_closed_formula(rows: list[tuple[int, float]]) -> None:
    code, times = np.array([c for c, _ in rows]), np.array([t for _, t in rows])
    shares = utilisations(code, times)
    expected = [straggler_utilisation(times[code == group].tolist()) for group in np.unique(code)]
    assert shares == pytest.approx(expected)
    assert all(0 < share <= 1 + 1e-12 for share in shares)


def test_times_of_a_whole_batch_are_not_taken_for_those_of_its_completions(tmp_path: Path) -> None:
    ledger = loop_cell(tmp_path, {"t_generate_start": [0] * 4, "t_generate_end": [1000 * MS] * 4})
    found = figures(ledger)
    for tag in (
        "straggler_utilisation_group",
        "straggler_utilisation_batch",
        "rollout_tail_ratio",
        "rollout_seconds_p50",
    ):
        assert found[tag].value is None
        assert found[tag].reason


def test_completions_without_times_are_counted_where_their_batch_ended(tmp_path: Path) -> None:
    found = figures(loop_cell(tmp_path, {"t_generate_start": [None] * 4, "t_generate_end": [None] * 4}))
    assert found["rollouts_per_second"].numerator == 12
    assert found["token_recount_gap"].value == 0.0
    assert "times" in str(found["straggler_utilisation_group"].reason)


def test_tokens_that_no_fate_accounts_for_show(tmp_path: Path) -> None:
    lost = {"sample_id": "lost", "fate": "dropped", "reason": "filtered", "policy_tokens": 5, "t": 0}
    found = figures(loop_cell(tmp_path, fates=[lost]))
    assert found["token_fates[dropped]"].value == 5
    assert found["token_closure_gap"].value == -5


def test_faults_by_kind(tmp_path: Path) -> None:
    fault = {"t": 0, "cause": "infrastructure", "where": "verifier", "detail": "timed out"}
    found = figures(
        loop_cell(tmp_path, faults=[fault | {"kind": "verifier_error"}, fault | {"kind": "record_refused"}])
    )
    assert found["faults"].value == 2
    assert found["faults[verifier_error]"].value == 1


def test_a_batch_that_the_window_cuts_is_counted_whole(tmp_path: Path) -> None:
    """A second worker's part of batch 1, of 7 tokens, began before the window: its spans do not count in it, but its
    completion ends in it."""
    part = rollout(9, sample_id="late", group_id="late", trace_id="gen-1", response_tokens=[7] * 7, policy_version=0)
    part |= {"policy_mask": [0] * 3 + [1] * 7, "behavior_logprobs": [-0.5] * 7, "t_generate_end": at(1, 20)}
    early = span("decode", at(0, 80), at(1, 20), trace_id="gen-1", output_tokens=7)
    with LedgerWriter(tmp_path / "streams", "rollout-1", "run/cell") as worker:
        worker.accept_batch([part])
        worker.write("spans", [early])
    found = figures(loop_cell(tmp_path))
    assert found["token_recount_gap"].value == 0
    assert found["token_recount_gap"].n == 48 + 7
