"""What of the training changed across a restart [12.5.3]: the steps after it beside as many before."""

from collections.abc import Callable

import numpy as np

from harness.measure.columns import Array
from harness.measure.figures.recovery import RecoveryMeasure
from harness.measure.measure import UnmeasuredError, figure
from harness.measure.restarts import some_resumes
from harness.measure.values import Value
from harness.measure.view import CellView

WIDTH = 3
"""Optimizer steps on either side of a restart over which a metric is averaged, or as many as there are."""


@figure
class RestartChange(RecoveryMeasure):
    """Mean of a metric over the first three optimizer steps after the last restart, less its mean over the last three
    before it; of the gradient norm and of the completion length their ratio."""

    tag, title, unit = "restart_change", "Change across a restart", "as the metric"
    needs = ("manifest.resumed", "trained.step", "updates.step", "rollouts.reward_total")
    variants = "the metric"

    def compute(self, view: CellView) -> list[Value]:
        """One for each of `METRICS`."""
        resume = some_resumes(view.tables.ledger)[-1]
        if not resume.kept:
            raise UnmeasuredError("the run began again: nothing of what came before the restart is part of it")
        return [self._change(view, resume.step, metric) for metric in METRICS]

    def _change(self, view: CellView, step: int, metric: str) -> Value:
        found = change_at(view, step, metric)
        said = {"variant": metric, "unit": METRICS[metric][0]}
        if found is None:
            return self.none("it is not known on both sides of the restart", **said)
        return self.value(found, 2 * WIDTH, **said)


def change_at(view: CellView, step: int, metric: str) -> float | None:
    """The change of a metric of `METRICS` across the begin of an optimizer step; None where a side has no value."""
    _, read, as_ratio = METRICS[metric]
    before, after = read(view, step - WIDTH, step), read(view, step, step + WIDTH)
    if not len(before) or not len(after) or (as_ratio and np.mean(before) == 0):
        return None
    return float(np.mean(after) / np.mean(before) if as_ratio else np.mean(after) - np.mean(before))


def _of_updates(column: str) -> Callable[[CellView, int, int], Array]:
    def read(view: CellView, first: int, end: int) -> Array:
        updates = view.tables.updates
        values = updates[column][(updates["step"] >= first) & (updates["step"] < end)]
        finite: Array = values[np.isfinite(values)]
        return finite

    return read


def _rows(view: CellView, first: int, end: int) -> Array:
    trained = view.tables.trained
    rows: Array = (trained.step >= first) & (trained.step < end) & (trained.rollout >= 0)
    return rows


def _reward(view: CellView, first: int, end: int) -> Array:
    rewards = view.tables.rollouts.reward[view.tables.trained.rollout[_rows(view, first, end)]]
    known: Array = rewards[~np.isnan(rewards)]
    return known


def _length(view: CellView, first: int, end: int) -> Array:
    lengths: Array = view.tables.rollouts.policy_tokens[view.tables.trained.rollout[_rows(view, first, end)]]
    return lengths


def _lag(view: CellView, first: int, end: int) -> Array:
    lags = view.tables.trained.lag[_rows(view, first, end)]
    known: Array = lags[lags >= 0]
    return known


def _log_ratio(view: CellView, first: int, end: int) -> Array:
    """Mean |log w| of each row."""
    trained, rows = view.tables.trained, _rows(view, first, end)
    some = rows & (trained.defined > 0)
    means: Array = trained.absolute[some] / trained.defined[some]
    return means


METRICS: dict[str, tuple[str, Callable[[CellView, int, int], Array], bool]] = {
    "reward": ("reward", _reward, False),
    "loss": ("loss", _of_updates("loss"), False),
    "grad_norm": ("ratio", _of_updates("grad_norm"), True),
    "completion_length": ("ratio", _length, True),
    "log_ratio": ("nats", _log_ratio, False),
    "lag": ("updates", _lag, False),
}
"""By metric its unit, how it is read for a range of steps, and whether its change is a ratio."""
