"""The groups of a cell: which are complete and judged, and which of them tell completions apart [12.2.5]."""

from dataclasses import dataclass

import numpy as np

from harness.measure.columns import Array, by_run
from harness.measure.rollouts import Rollouts


@dataclass(frozen=True)
class Groups:
    """One element a group, by its code.

    Attributes:
        size: completions; `judged`: complete, and every completion has a reward; `informative`: judged, and the
            rewards are not all equal. A judged group that is not informative is degenerate.
    """

    size: Array
    judged: Array
    informative: Array


def read_groups(rollouts: Rollouts) -> Groups:
    """Reduce completions to groups."""
    order = np.argsort(rollouts.group, kind="stable")
    size = np.bincount(rollouts.group) if len(rollouts) else np.empty(0, np.int64)
    reward = rollouts.reward[order]
    complete = by_run(np.logical_and, rollouts.complete[order], size, 0)
    judged = complete & ~np.isnan(by_run(np.add, reward, size, np.nan))
    spread = by_run(np.maximum, reward, size, np.nan) > by_run(np.minimum, reward, size, np.nan)
    return Groups(size, judged, judged & spread)
