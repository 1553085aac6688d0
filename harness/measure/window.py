"""The part of a run that is measured: after the warm-up, up to the end of the last optimizer step's work."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.measure.columns import Array
from harness.measure.measure import UnmeasuredError
from harness.measure.ratios import Trained
from harness.measure.rollouts import Rollouts
from harness.measure.spans import OUTSIDE, Spans


@dataclass(frozen=True)
class Window:
    """Times in perf_counter_ns; the first `dropped` optimizer steps are before it."""

    t_start: int
    t_end: int
    dropped: int

    @property
    def seconds(self) -> float:
        """Its wall-clock length."""
        return (self.t_end - self.t_start) / 1e9


def whole_batches(warmup_steps: int, steps: int, trained: Trained, rollouts: Rollouts) -> int:
    """How many steps to drop: the first number from `warmup_steps` on at which no generated batch is cut in two, so
    that work and the steps that it feeds are both in or both out. Where there is none (an asynchronous loop), it is
    `warmup_steps` itself."""
    known = trained.rollout >= 0
    trace, step = rollouts.trace[trained.rollout[known]], trained.step[known]
    first = np.full(len(rollouts.traces), steps)
    last = np.full(len(rollouts.traces), -1)
    np.minimum.at(first, trace, step)
    np.maximum.at(last, trace, step)
    for cut in range(warmup_steps, steps):
        if not ((first < cut) & (last >= cut)).any():
            return cut
    return warmup_steps


def find_window(
    note: dict[str, Any] | None, updates: dict[str, Array], spans: Spans, dropped: int, first_kept: Array
) -> Window:
    """The window that begins after `dropped` steps.

    Args:
        note: the manifest's `window`, if there is one.
        first_kept: which spans belong to batches that no dropped step consumed, or to later steps.

    Raises:
        UnmeasuredError: there is no optimizer step after the warm-up.
    """
    ends = updates["t_end"]
    if len(ends) <= dropped:
        raise UnmeasuredError(f"the run has {len(ends)} optimizer steps, of which {dropped} are warm-up")
    inside = ~spans.is_in(*OUTSIDE)
    end = int(note["t_end"]) if note else int(ends.max())
    if dropped == 0:
        begins = [int(note["t_start"])] if note else [int(spans.t_start[inside].min(initial=updates["t_start"].min()))]
        return Window(begins[0], end, 0)
    before = int(ends[dropped - 1])
    later = spans.t_start[first_kept & inside & (spans.t_start >= before)]
    return Window(int(later.min()) if len(later) else before, end, dropped)
