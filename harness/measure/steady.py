"""From which step on a run is steady, by a rule: where the seconds of its steps no longer go up or down."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import theilslopes

from harness.measure.columns import Array
from harness.measure.measure import UnmeasuredError
from harness.measure.view import CellView

CONFIDENCE = 0.95
LEAST_PERIODS = 6
"""Fewer have no slope that could be told from none."""
MOST_PERIODS = 200
"""All pairs of them are looked at, for each number of steps that might be dropped."""
LATEST = 0.5
"""The part of a run that the rule may call warm-up: what is steady only later is called not steady."""
TRIFLE = 0.01
"""A drift that surely stays below this share over all that is left counts as none, however sure it is."""


@dataclass(frozen=True)
class Drift:
    """How the seconds of steps change from one step to the next, as a share of their median, with its 95 % interval.

    Theil and Sen's slope: the median of the slopes of all pairs of points, which a few long steps do not move. Its
    interval takes the steps for independent; steps that come in slow and fast stretches are less sure than it says.
    """

    slope: float
    low: float
    high: float
    steps: int

    @property
    def steady(self) -> bool:
        """Whether it may be none, or is surely a trifle."""
        return self.low <= 0 <= self.high or max(abs(self.low), abs(self.high)) * self.steps < TRIFLE


def step_seconds(view: CellView) -> Array:
    """Seconds of every optimizer step of the whole run, from the end of the one before; of the first, from the start
    of the loop."""
    whole = view.whole_run()
    return np.diff(np.concatenate([[whole.window.t_start], whole.updates["t_end"]])) / 1e9


def window_drift(view: CellView) -> Drift:
    """The drift over the window.

    Raises:
        UnmeasuredError: it has too few steps.
    """
    return _drift(*_periods(view))


def warmup_by_rule(view: CellView) -> int | None:
    """The first number of steps to drop, from what was dropped on, after which the rest is steady; None where there is
    none in the first half of the run.

    Raises:
        UnmeasuredError: too few steps are left.
    """
    first, total = view.window.dropped, len(view.tables.updates["step"])
    periods, together = _periods(view)
    most = max(int(total * LATEST) - first, 0) // together
    cuts = range(min(most, len(periods) - LEAST_PERIODS) + 1)
    return next((first + cut * together for cut in cuts if _drift(periods[cut:], together).steady), None)


def _periods(view: CellView) -> tuple[Array, int]:
    """The mean seconds of a step of the window, over each few successive ones, and over how many: over those of one
    generated batch, of which the first waits for it, and over more where there would be too many."""
    task, seconds = view.context.task, step_seconds(view)[view.window.dropped :]
    batch = int(task.get("minibatches", 1) * task.get("inner_epochs", 1))
    together = batch * max(-(-len(seconds) // (batch * MOST_PERIODS)), 1)
    return seconds[: len(seconds) // together * together].reshape(-1, together).mean(axis=1), together


def _drift(periods: Array, together: int) -> Drift:
    if len(periods) < LEAST_PERIODS:
        raise UnmeasuredError(f"{len(periods)} batches after the warm-up: a drift takes {LEAST_PERIODS}")
    scale = float(np.median(periods)) * together
    if scale <= 0:
        raise UnmeasuredError("the steps took no time")
    found = theilslopes(periods, alpha=CONFIDENCE)
    slope, low, high = (float(one) / scale for one in (found.slope, found.low_slope, found.high_slope))
    return Drift(slope, low, high, len(periods) * together)
