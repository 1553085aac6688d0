"""What is measured and what is warm-up; and files read in pieces give the same as files read whole."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.measure import columns
from harness.measure.api import measure_cell
from harness.measure.columns import Scratch, by_run, quantiles_by_code, starts_of
from harness.measure.spans import Spans
from harness.theory.ess import log_sum_exp
from tests.fakes import context, fake_ledger, figures

LENGTHS = st.lists(st.integers(0, 6), min_size=0, max_size=20)


def test_warmup_is_dropped_in_whole_batches(tmp_path: Path) -> None:
    """Four updates a batch: two warm-up steps become four, so that no batch is cut in two."""
    found = figures(tmp_path, {"minibatches": 4, "steps": 12, "warmup_steps": 2})
    assert found["warmup_steps_dropped"].value == 4
    # a batch: 28 ms of rollout and assembly, four updates of 12 ms and a gap of 1 ms
    assert found["window_seconds"].value == pytest.approx(2 * (0.028 + 4 * 0.013))
    assert found["output_tokens_per_second"].numerator == 2 * 80
    assert found["training_tokens_per_second"].numerator == 2 * 80


def test_a_loop_that_generates_ahead_has_no_whole_batches(tmp_path: Path) -> None:
    """Batches overlap in time but each is consumed by one step, so that a cut between steps cuts none."""
    found = figures(tmp_path, {"warmup_steps": 3}, ahead=1)
    assert found["warmup_steps_dropped"].value == 3
    # 7 updates; the batch of step 3 was generated before, that of step 9 + 1 is generated in the window
    assert found["rollouts_per_second"].numerator == 7 * 16
    assert found["window_seconds"].value == pytest.approx(7 * 0.041)


def test_no_warmup_measures_all(tmp_path: Path) -> None:
    found = figures(tmp_path, {"warmup_steps": 0})
    assert found["window_seconds"].value == pytest.approx(10 * 0.041)
    assert found["output_tokens_per_second"].numerator == 800


def test_what_was_generated_after_the_last_step_is_in_flight_and_outside(tmp_path: Path) -> None:
    found = figures(tmp_path, left_in_flight=True)
    assert found["token_fates[in_flight]"].value == 80
    assert found["token_closure_gap"].value == 0
    assert found["output_tokens_per_second"].numerator == 640


def test_pieces_of_any_size_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task: dict[str, Any] = {"minibatches": 2, "inner_epochs": 2, "steps": 12}
    ledger = fake_ledger(tmp_path, task, log_ratios=[0.0, 0.3, -0.2], unknown_every=5, error_every=7)
    whole = [value.as_dict() for value in measure_cell(ledger, context(task))]
    monkeypatch.setattr(columns, "TOKENS_A_PIECE", 20)
    pieces = [value.as_dict() for value in measure_cell(ledger, context(task))]
    assert whole == pieces


@settings(deadline=None)
@given(LENGTHS, st.randoms())
def test_gather_is_take(counts: list[int], random: Any) -> None:
    runs = [np.array([random.random() for _ in range(count)], dtype=np.float32) for count in counts]
    scratch = Scratch()
    for run in runs:
        scratch.append(run)
    lengths = np.array(counts, dtype=np.int64)
    order = list(range(len(counts)))
    for _ in range(2):
        chosen = np.array(order, dtype=np.int64)
        found = scratch.gather(starts_of(lengths)[chosen], lengths[chosen])
        expected = np.concatenate([runs[i] for i in order]) if order else np.empty(0, np.float32)
        assert found.tolist() == expected.tolist()
        random.shuffle(order)


@settings(deadline=None)
@given(LENGTHS)
def test_by_run_is_a_loop(counts: list[int]) -> None:
    values = np.arange(sum(counts), dtype=np.float64) * 1.5 - 3
    parts = np.split(values, np.cumsum(counts)[:-1]) if counts else []
    lengths = np.array(counts, dtype=np.int64)
    assert by_run(np.add, values, lengths, 0.0).tolist() == [part.sum() for part in parts]
    assert by_run(np.maximum, values, lengths, -1.0).tolist() == [
        part.max(initial=-1e9) if len(part) else -1.0 for part in parts
    ]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=15), st.integers(0, 40), st.integers(0, 40))
def test_covered_seconds_is_a_union(intervals: list[tuple[int, int]], start: int, length: int) -> None:
    begin = np.array([a for a, _ in intervals], dtype=np.int64)
    end = begin + np.array([b for _, b in intervals], dtype=np.int64)
    zeros = np.zeros(len(intervals), dtype=np.int64)
    names = Spans.__dataclass_fields__.keys() - {"t_start", "t_end", "names"}
    spans = Spans(**dict.fromkeys(names, zeros), t_start=begin, t_end=end, names={"stage": ["decode"]})
    ticks = {t for a, b in zip(begin, end, strict=True) for t in range(a, b)} & set(range(start, start + length))
    assert spans.covered_seconds(start, start + length) == pytest.approx(len(ticks) / 1e9)


def test_pooled_sums_are_those_of_the_tokens() -> None:
    rows = [np.array([0.5, -0.25]), np.array([3.0])]
    assert log_sum_exp(np.array([log_sum_exp(row) for row in rows])) == pytest.approx(log_sum_exp(np.concatenate(rows)))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.floats(-100, 100)), max_size=40), st.floats(0, 1))
def test_quantiles_by_code_are_those_of_each_part(pairs: list[tuple[int, float]], share: float) -> None:
    code = np.array([number for number, _ in pairs], dtype=np.int64)
    values = np.array([value for _, value in pairs], dtype=np.float64)
    (found,) = quantiles_by_code(code, values, share)
    assert found == pytest.approx([np.quantile(values[code == number], share) for number in np.unique(code)], abs=1e-9)
