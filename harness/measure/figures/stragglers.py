"""What waiting for the slowest costs [12.3.2]."""

from typing import ClassVar

import numpy as np

from harness.measure.columns import Array, by_run, quantiles_by_code
from harness.measure.measure import Measure, UnmeasuredError, figure
from harness.measure.values import Value
from harness.measure.view import CellView

TIMES = ("rollouts.t_generate_start", "rollouts.t_generate_end")
TOGETHER = "the engine hands all completions of a batch back together; see the utilisation by tokens"


def by_code(code: Array, values: Array) -> tuple[Array, Array]:
    """`values` in the order of their codes, and how many each code has."""
    order = np.argsort(code, kind="stable")
    _, counts = np.unique(code, return_counts=True)
    return values[order], counts


def rollout_seconds(view: CellView) -> tuple[Array, Array]:
    """Duration of each completion of the window that has its own times, and its row.

    Raises:
        UnmeasuredError: there are none, or the completions of a batch are not told apart.
    """
    rollouts = view.tables.rollouts
    rows = np.flatnonzero(view.rollouts & (rollouts.t_start >= 0) & (rollouts.t_end >= 0))
    if not len(rows):
        raise UnmeasuredError("the engine gives no times of single completions")
    seconds = (rollouts.t_end[rows] - rollouts.t_start[rows]) / 1e9
    if _all_equal(rollouts.trace[rows], seconds) and not _all_equal(rollouts.trace[rows], rollouts.policy_tokens[rows]):
        raise UnmeasuredError(TOGETHER)
    return seconds, rows


def _all_equal(code: Array, values: Array) -> bool:
    ordered, counts = by_code(code, values)
    return bool((by_run(np.maximum, ordered, counts, 0) == by_run(np.minimum, ordered, counts, 0)).all())


def utilisations(code: Array, values: Array) -> Array:
    """`U = sum T_i / (n max T_i)` of each code; codes without any work are left out."""
    ordered, counts = by_code(code, values.astype(np.float64))
    longest = by_run(np.maximum, ordered, counts, 0.0)
    some = longest > 0
    shares: Array = by_run(np.add, ordered, counts, 0.0)[some] / (counts[some] * longest[some])
    return shares


class Utilisation(Measure):
    """The median straggler utilisation."""

    unit = "share"
    direction = "higher"
    topic = "stages"
    source = "12.3.2"

    def median(self, code: Array, values: Array) -> Value:
        """Over all codes."""
        shares = utilisations(code, values)
        if not len(shares):
            return self.none("no completion ended in the window")
        return self.value(float(np.median(shares)), len(shares))


@figure
class GroupUtilisation(Utilisation):
    """Median over groups of U = sum T_i / (n max T_i), T_i the seconds of a completion: the share of the reserved time
    that is used while a group waits for its slowest."""

    tag, title, needs = "straggler_utilisation_group", "Straggler utilisation, groups", (*TIMES, "rollouts.group_id")

    def compute(self, view: CellView) -> Value:
        """By group."""
        seconds, rows = rollout_seconds(view)
        return self.median(view.tables.rollouts.group[rows], seconds)


@figure
class BatchUtilisation(Utilisation):
    """Median over generated batches of U = sum T_i / (n max T_i), T_i the seconds of a completion."""

    tag, title, needs = "straggler_utilisation_batch", "Straggler utilisation, batches", (*TIMES, "rollouts.trace_id")

    def compute(self, view: CellView) -> Value:
        """By generated batch."""
        seconds, rows = rollout_seconds(view)
        return self.median(view.tables.rollouts.trace[rows], seconds)


@figure
class TokenUtilisation(Utilisation):
    """Median over generated batches of U with completion length in place of time: what an engine with a static batch
    uses of its rectangle of decode steps."""

    tag, title = "straggler_utilisation_tokens", "Straggler utilisation, by tokens"
    needs = ("rollouts.policy_mask", "rollouts.trace_id")

    def compute(self, view: CellView) -> Value:
        """By generated batch."""
        rollouts = view.tables.rollouts
        return self.median(rollouts.trace[view.rollouts], rollouts.policy_tokens[view.rollouts])


@figure
class TailRatio(Measure):
    """Median over generated batches of p95 / p50 of the seconds of its completions."""

    tag, title, unit, direction = "rollout_tail_ratio", "Tail ratio of a batch", "ratio", "lower"
    topic = "stages"
    source, needs = "12.3.2", (*TIMES, "rollouts.trace_id")

    def compute(self, view: CellView) -> Value:
        """By generated batch."""
        seconds, rows = rollout_seconds(view)
        middle, tail = quantiles_by_code(view.tables.rollouts.trace[rows], seconds, 0.5, 0.95)
        some = middle > 0
        if not some.any():
            return self.none("the median completion of every batch takes no time")
        return self.value(float(np.median(tail[some] / middle[some])), int(some.sum()))


class RolloutQuantile(Measure):
    """A quantile of rollout durations."""

    unit = "s"
    direction = "lower"
    topic = "stages"
    source = "12.5.2"
    needs = TIMES
    share: ClassVar[float]

    def compute(self, view: CellView) -> Value:
        """Interpolated linearly."""
        seconds, rows = rollout_seconds(view)
        return self.value(float(np.quantile(seconds, self.share)), len(rows))


@figure
class RolloutMedian(RolloutQuantile):
    """Median seconds from the start to the end of a completion's generation."""

    tag, title, share = "rollout_seconds_p50", "Rollout duration, median", 0.5


@figure
class RolloutP95(RolloutQuantile):
    """95th percentile of the seconds from the start to the end of a completion's generation."""

    tag, title, share = "rollout_seconds_p95", "Rollout duration, p95", 0.95


@figure
class RolloutP99(RolloutQuantile):
    """99th percentile of the seconds from the start to the end of a completion's generation."""

    tag, title, share = "rollout_seconds_p99", "Rollout duration, p99", 0.99
