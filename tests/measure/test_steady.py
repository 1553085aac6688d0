"""The rule for the warm-up: it finds where steps no longer drift, says where they always do, and is seldom wrong."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.measure.api import measure_cell, series_cell, view_of
from harness.measure.columns import Array
from harness.measure.measure import UnmeasuredError
from harness.measure.steady import Drift, _drift, warmup_by_rule, window_drift
from harness.measure.view import CellView
from tests.fakes import context, fake_ledger, figures

STEPS = 40


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> CellView:
    """A run whose step times each test says; 3 of 40 steps are dropped."""
    task = {"steps": STEPS, "warmup_steps": 3}
    return view_of(fake_ledger(tmp_path_factory.mktemp("steady"), task), context(task))


def _says(monkeypatch: pytest.MonkeyPatch, seconds: Array) -> None:
    monkeypatch.setattr("harness.measure.steady.step_seconds", lambda view: seconds)


def _noise(seed: int, share: float = 0.02) -> Array:
    noise: Array = np.exp(np.random.default_rng(seed).normal(0, share, STEPS))
    return noise


def test_equal_steps_are_steady_from_the_floor_on(view: CellView) -> None:
    assert warmup_by_rule(view) == 3
    assert window_drift(view) == Drift(0.0, 0.0, 0.0, 37)


def test_a_longer_warmup_is_found(view: CellView, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = np.arange(STEPS)
    _says(monkeypatch, (1 + 2 * np.exp(-steps / 3.0)) * _noise(1))
    found = warmup_by_rule(view)
    assert found is not None
    assert 5 <= found <= 14


def test_a_drift_that_goes_on_is_told_with_its_size(view: CellView, monkeypatch: pytest.MonkeyPatch) -> None:
    _says(monkeypatch, (1 + 0.02 * np.arange(STEPS)) * _noise(2))
    assert warmup_by_rule(view) is None
    # 2 % of the first step is 1.4 % of the median one
    assert window_drift(view).slope == pytest.approx(0.02 / 1.4, rel=0.1)


def test_a_few_long_steps_are_no_drift(view: CellView, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = _noise(3)
    seconds[[7, 20, 33]] *= 4
    _says(monkeypatch, seconds)
    assert warmup_by_rule(view) == 3


def test_a_sure_trifle_is_steady() -> None:
    assert Drift(1e-5, 9e-6, 1.1e-5, 100).steady
    assert not Drift(1e-5, 9e-6, 1.1e-5, 1000).steady


def test_a_steady_run_is_seldom_called_anything_else() -> None:
    """At 95 % the floor fails by chance in one run of twenty: that is why a caution takes most repeats, not one."""
    random = np.random.default_rng(4)
    false = [not _drift(np.exp(random.normal(0, 0.03, 20)), 1).steady for _ in range(1000)]
    assert np.mean(false) == pytest.approx(0.05, abs=0.02)


def test_the_steps_of_a_batch_are_looked_at_as_one(tmp_path: Path) -> None:
    """The first of four updates waits for the rollout: a saw is not a drift."""
    task = {"minibatches": 4, "steps": 48, "warmup_steps": 2}
    found = figures(tmp_path, task)
    assert found["warmup_steps_by_rule"].value == found["warmup_steps_dropped"].value == 4
    assert found["step_seconds_drift"].value == 0


def test_long_runs_are_looked_at_in_a_bounded_number_of_pieces(view: CellView, monkeypatch: pytest.MonkeyPatch) -> None:
    _says(monkeypatch, np.ones(10_000))
    assert window_drift(view).steps == 9950  # 199 pieces of 50
    assert warmup_by_rule(view) == 3


def test_too_short_a_run_says_so(tmp_path: Path) -> None:
    found = figures(tmp_path, {"steps": 6, "warmup_steps": 3})
    for name in ("warmup_steps_by_rule", "step_seconds_drift"):
        assert found[name].value is None
        assert found[name].reason == "3 batches after the warm-up: a drift takes 6"
    with pytest.raises(UnmeasuredError):
        _drift(np.zeros(10), 1)


def test_what_is_never_steady_has_no_number_but_a_reason(view: CellView, monkeypatch: pytest.MonkeyPatch) -> None:
    _says(monkeypatch, 1 - 0.01 * np.arange(STEPS))
    found: dict[str, Any] = {value.name: value for value in measure_cell(view)}
    assert found["warmup_steps_by_rule"].value is None
    assert found["warmup_steps_by_rule"].reason == "not steady: its steps get 1.27% shorter from each to the next"


def test_every_step_is_kept_and_marked(view: CellView) -> None:
    steps = series_cell(view)["steps"]
    assert steps["step"] == list(range(STEPS))
    assert steps["warmup"] == [True] * 3 + [False] * (STEPS - 3)
    assert steps["seconds"] == pytest.approx([0.040, *[0.041] * (STEPS - 1)])
