"""Where the time of a step goes [12.1.5, 12.3.5]."""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from harness.contract import STAGES
from harness.measure.columns import Array
from harness.measure.measure import Measure, figure
from harness.measure.spans import IDLE, OUTSIDE, PARTS
from harness.measure.values import Direction, Value
from harness.measure.view import CellView

SPAN_TIMES = "spans.t_start, spans.t_end"
LOOP_STAGES = tuple(stage for stage in STAGES if stage not in OUTSIDE)


def stage_times(view: CellView, stage: str) -> Array:
    """Seconds of a stage in each generated batch or optimizer step: its spans of one trace id and step, summed."""
    spans = view.spans.of(stage)
    keys = np.stack([spans.trace_id, spans.step], axis=1) if len(spans) else np.empty((0, 2))
    _, unit = np.unique(keys, axis=0, return_inverse=True)
    return np.bincount(unit.ravel(), weights=spans.seconds) if len(spans) else np.empty(0)


class TimeMeasure(Measure):
    """A figure of time."""

    topic = "stages"


class StageMeasure(TimeMeasure):
    """A figure of each stage."""

    unit = "s"
    direction: ClassVar[Direction] = "lower"
    source = "12.3.5"
    needs = ("spans.stage", SPAN_TIMES)
    variants = "stage"

    def compute(self, view: CellView) -> list[Value]:
        """One value a stage; a stage that the system does not have is told apart from one without spans."""
        return [self._of(view, stage) for stage in LOOP_STAGES]

    def _of(self, view: CellView, stage: str) -> Value:
        times = stage_times(view, stage)
        if len(times):
            return self.value(self.reduce(times), len(times), variant=stage)
        if (reason := view.absent(stage)) is not None:
            return self.none(reason, variant=stage, absent=True)
        return self.none("no span of this stage in the window", variant=stage)

    def reduce(self, times: Array) -> float:
        """The figure of one stage from its times."""
        raise NotImplementedError


class StageQuantile(StageMeasure):
    """A quantile of a stage's times."""

    share: ClassVar[float]

    def reduce(self, times: Array) -> float:
        """The quantile, interpolated linearly."""
        return float(np.quantile(times, self.share))


@figure
class StageMedian(StageQuantile):
    """Median of the seconds that a stage takes in one generated batch or optimizer step, after warm-up."""

    tag, title, share = "stage_seconds_p50", "Stage time, median", 0.5


@figure
class StageP95(StageQuantile):
    """95th percentile of the seconds that a stage takes in one generated batch or optimizer step, after warm-up."""

    tag, title, share = "stage_seconds_p95", "Stage time, p95", 0.95


@figure
class StageP99(StageQuantile):
    """99th percentile of the seconds that a stage takes in one generated batch or optimizer step, after warm-up."""

    tag, title, share = "stage_seconds_p99", "Stage time, p99", 0.99


@figure
class StageMean(StageMeasure):
    """Mean of the seconds that a stage takes in one generated batch or optimizer step; to be read beside the median."""

    tag, title = "stage_seconds_mean", "Stage time, mean"

    def reduce(self, times: Array) -> float:
        """The mean."""
        return float(times.mean())


@figure
class StageShare(StageMeasure):
    """A stage's share of T_seq: its seconds in the window over the seconds of all stages but waiting. The share of
    `observation`, the probe's own work between a framework's stages, is what watching costs on top of T_seq."""

    tag, title, unit, direction, source = "stage_share", "Stage, share of T_seq", "share", "none", "12.1.5"

    def reduce(self, times: Array) -> float:
        """Its time in the window."""
        return float(times.sum())

    def compute(self, view: CellView) -> list[Value]:
        """Its time over that of all working stages."""
        whole = sum(seconds for _, seconds in part_seconds(view))
        found = super().compute(view)
        return [v if v.value is None else self.ratio(v.value, whole, v.n, variant=v.variant) for v in found]


def part_seconds(view: CellView) -> Iterator[tuple[str, float]]:
    """Seconds in the window of each of the five terms of `T_seq`, and of the working stages that are in none."""
    named: set[str] = set()
    for part, stages in PARTS.items():
        named.update(stages)
        yield part, float(view.spans.of(*stages).seconds.sum())
    rest = [stage for stage in LOOP_STAGES if stage not in named and stage not in IDLE]
    yield "other", float(view.spans.of(*rest).seconds.sum())


@figure
class SequentialTime(TimeMeasure):
    """T_seq = T_rollout + T_reward + T_logp + T_train + T_sync in seconds an optimizer step: what the stages would take
    one after another."""

    tag, title, unit, direction, source = "t_seq_seconds", "T_seq per optimizer step", "s", "lower", "12.1.5"
    needs = ("spans.stage", SPAN_TIMES, "updates.step")

    def compute(self, view: CellView) -> Value:
        """All parts over the steps of the window."""
        return self.ratio(sum(seconds for _, seconds in part_seconds(view)), view.steps, view.steps)


@figure
class SequentialPart(TimeMeasure):
    """One term of T_seq in seconds an optimizer step: rollout (prompt preparation, prefill, decode), reward, logp,
    train (batch assembly, forward and backward, optimizer step), sync, other (checkpoints)."""

    tag, title, unit, direction, source = "t_seq_part_seconds", "Term of T_seq", "s", "lower", "12.1.5"
    needs = ("spans.stage", SPAN_TIMES, "updates.step")
    variants = "term"

    def compute(self, view: CellView) -> list[Value]:
        """One value a term; absent, not zero, where the system has none of its stages."""
        return [self._term(view, part, seconds) for part, seconds in part_seconds(view) if part in PARTS or seconds]

    def _term(self, view: CellView, part: str, seconds: float) -> Value:
        reasons = [view.absent(stage) for stage in PARTS.get(part, ())]
        if seconds == 0 and reasons and all(reasons):
            return self.none(str(reasons[0]), variant=part, absent=True)
        return self.ratio(seconds, view.steps, view.steps, variant=part)


@figure
class Unattributed(TimeMeasure):
    """Share of the window's wall clock that no span of any process covers; over 0.05 the report says so at its top."""

    tag, title, unit, direction, source = "unattributed_share", "Unattributed time", "share", "lower", "12.1.5"
    needs = (SPAN_TIMES, "manifest.window")

    def compute(self, view: CellView) -> Value:
        """What is left of the window."""
        window, spans = view.window, view.tables.spans
        covered = spans.covered_seconds(window.t_start, window.t_end)
        return self.ratio(max(window.seconds - covered, 0.0), window.seconds, len(spans))


@figure
class StepSeconds(TimeMeasure):
    """Wall-clock seconds of the window over its optimizer steps, everything included."""

    tag, title, unit, direction, source = "step_seconds", "Wall time per optimizer step", "s", "lower", "12.1.5"
    needs = ("manifest.window", "updates.step")

    def compute(self, view: CellView) -> Value:
        """Wall over steps."""
        return self.ratio(view.window.seconds, view.steps, view.steps)


class StepQuantile(TimeMeasure):
    """A quantile of the time between the ends of successive optimizer steps."""

    unit = "s"
    direction = "lower"
    source = "12.3.5"
    needs = ("updates.t_end", "manifest.window")
    share: ClassVar[float]

    def compute(self, view: CellView) -> Value:
        """Interpolated linearly; the first step counts from the start of the window."""
        ends = np.concatenate([[view.window.t_start], view.updates["t_end"]])
        return self.value(float(np.quantile(np.diff(ends) / 1e9, self.share)), view.steps)


@figure
class StepMedian(StepQuantile):
    """Median of the seconds between the ends of successive optimizer steps, after warm-up."""

    tag, title, share = "step_seconds_p50", "Wall time of an optimizer step, median", 0.5


@figure
class StepP95(StepQuantile):
    """95th percentile of the seconds between the ends of successive optimizer steps, after warm-up."""

    tag, title, share = "step_seconds_p95", "Wall time of an optimizer step, p95", 0.95


@figure
class StepP99(StepQuantile):
    """99th percentile of the seconds between the ends of successive optimizer steps, after warm-up."""

    tag, title, share = "step_seconds_p99", "Wall time of an optimizer step, p99", 0.99


@figure
class WindowSeconds(TimeMeasure):
    """Wall-clock seconds that are measured: from the end of the warm-up to the end of the last step's work."""

    tag, title, unit, direction, source = "window_seconds", "Measured window", "s", "none", "12.3.5"
    needs = ("manifest.window", "updates.t_end", SPAN_TIMES)

    def compute(self, view: CellView) -> Value:
        """Its length."""
        return self.value(view.window.seconds, view.steps)


@figure
class WarmupDropped(TimeMeasure):
    """Optimizer steps dropped at the start: `task.warmup_steps`, and as many more as it takes to drop whole generated
    batches."""

    tag, title, unit, direction = "warmup_steps_dropped", "Warm-up dropped", "steps", "none"
    source, needs = "12.3.5", ("updates.step", "trained.step")

    def compute(self, view: CellView) -> Value:
        """Their number."""
        return self.value(float(view.window.dropped), len(view.tables.updates["step"]))


@figure
class StartupSeconds(TimeMeasure):
    """Seconds of imports, model load and compilation before the loop; outside every rate."""

    tag, title, unit, direction, source = "startup_seconds", "Startup", "s", "lower", "12.3.5"
    needs = ("spans.stage", SPAN_TIMES)

    def compute(self, view: CellView) -> Value:
        """The union of its spans."""
        spans = view.tables.spans.of("startup")
        if not len(spans):
            return self.none("no span of this stage")
        return self.value(spans.union_seconds(), len(spans))
