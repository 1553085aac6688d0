"""What of the training changed across a restart [12.5.3]: the steps after it beside as many before."""

from collections.abc import Callable

import numpy as np

from harness.measure.columns import Array
from harness.measure.figures.recovery import RecoveryMeasure
from harness.measure.measure import figure
from harness.measure.restarts import Resume, some_resumes
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
        return [self._change(view, resume, metric) for metric in METRICS]

    def _change(self, view: CellView, resume: Resume, metric: str) -> Value:
        unit, read, as_ratio = METRICS[metric]
        said = {"variant": metric, "unit": unit}
        if not resume.kept:
            return self.none("the run began again: of what came before the restart nothing is part of it", **said)
        before = read(view, resume.step - WIDTH, resume.step)
        after = read(view, resume.step, resume.step + WIDTH)
        if not len(before) or not len(after):
            side = "before" if not len(before) else "after"
            return self.none(f"no optimizer step {side} the restart tells it", **said)
        means = float(np.mean(before)), float(np.mean(after))
        if as_ratio and means[0] == 0:
            return self.none("its mean before the restart is 0", **said)
        change = means[1] / means[0] if as_ratio else means[1] - means[0]
        return self.value(change, len(before) + len(after), **said)


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
