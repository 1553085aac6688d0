"""Work, critical path, utilisation, period: four different figures of one timeline [12.3.1, 12.3.5]."""

from collections import defaultdict
from collections.abc import Iterator, Set
from dataclasses import dataclass

import numpy as np

from harness.measure.columns import Array
from harness.measure.figures.time import SPAN_TIMES, TimeMeasure
from harness.measure.measure import UnmeasuredError, figure
from harness.measure.spans import GENERATING, IDLE, PARTS, Spans
from harness.measure.values import Value
from harness.measure.view import CellView
from harness.theory.pipeline import overlapped_period, pipeline_total, sequential_period


@figure
class WorkSeconds(TimeMeasure):
    """Total work: the durations of all spans of the window, of all processes, waiting and the probe's own work left
    out, summed."""

    tag, title, unit, direction, source = "work_seconds", "Work", "s", "lower", "12.3.5"
    needs = (SPAN_TIMES,)

    def compute(self, view: CellView) -> Value:
        """The sum."""
        spans = view.spans
        idle = spans.of(*IDLE).seconds.sum()
        return self.value(float(spans.seconds.sum() - idle), len(spans))


Key = tuple[str, int]
UPDATES: Key = ("updates", 0)


@dataclass(frozen=True)
class _Line:
    """Spans that depend on one another in time, in the order of their ends."""

    ends: Array
    rows: Array


def _lines(keys: Iterator[tuple[int, Key]], spans: Spans) -> dict[Key, _Line]:
    members: dict[Key, list[int]] = defaultdict(list)
    for row, key in keys:
        members[key].append(row)
    out = {}
    for key, rows in members.items():
        ordered = np.array(rows)[np.argsort(spans.t_end[rows], kind="stable")]
        out[key] = _Line(spans.t_end[ordered], ordered)
    return out


def critical_path(view: CellView) -> Spans:
    """The chain of spans of the window that its last optimizer step waited for.

    Walking back from that step, each span's predecessor is the one that ended last before it began, of those it could
    have waited for: spans of its own process and of its batch; for a process that trains, of its step and of the
    batches that the step consumes; for generation, the publication of the version that it samples from; for a
    publication, the optimizer step before it.
    """
    spans = view.spans.where((view.spans.t_end > view.spans.t_start) & ~view.spans.is_in(*IDLE))
    last = spans.of("optimizer_step", "forward_backward")
    if not len(last):
        raise UnmeasuredError("no optimizer step has a span in the window")
    if (alone := _one_after_another(spans, int(last.t_end.max()))) is not None:
        return alone
    trainers = {int(process) for process in last.process}
    lines = _lines(_memberships(spans, trainers), spans)
    sources = _consumed_traces(view, spans)
    row = int(np.flatnonzero(spans.row == last.row[np.argmax(last.t_end)])[0])
    chain = []
    while row >= 0:
        chain.append(row)
        row = _predecessor(row, spans, lines, sources, trainers)
    return spans.where(np.array(chain[::-1]))


def _one_after_another(spans: Spans, end: int) -> Spans | None:
    """The spans up to `end` of a single process, in order: each waited for the one before. None where there are several
    processes or spans that overlap."""
    if len(np.unique(spans.process)) > 1:
        return None
    ordered = spans.where(np.argsort(spans.t_start, kind="stable"))
    if (ordered.t_start[1:] < ordered.t_end[:-1]).any():
        return None
    return ordered.where(ordered.t_end <= end)


def _memberships(spans: Spans, trainers: Set[int]) -> Iterator[tuple[int, Key]]:
    sync = spans.names["stage"].index("weight_sync") if "weight_sync" in spans.names["stage"] else -1
    for row in range(len(spans)):
        yield row, ("process", int(spans.process[row]))
        yield row, ("trace", int(spans.trace_id[row]))
        if spans.step[row] >= 0 and spans.process[row] in trainers:
            yield row, ("step", int(spans.step[row]))
        if spans.stage[row] == sync:
            yield row, ("version", int(spans.policy_version[row]))
        if spans.names["stage"][spans.stage[row]] == "optimizer_step":
            yield row, UPDATES


def _consumed_traces(view: CellView, spans: Spans) -> dict[int, list[int]]:
    """By optimizer step: the codes, among the spans' trace ids, of the generated batches that it consumes."""
    trained, rollouts = view.tables.trained, view.tables.rollouts
    code = {name: number for number, name in enumerate(spans.names["trace_id"])}
    known = trained.rollout >= 0
    count = max(len(rollouts.traces), 1)
    pairs = np.unique(trained.step[known].astype(np.int64) * count + rollouts.trace[trained.rollout[known]])
    out: dict[int, list[int]] = defaultdict(list)
    for step, trace in zip(pairs // count, pairs % count, strict=True):
        if rollouts.traces[trace] in code:
            out[int(step)].append(code[rollouts.traces[trace]])
    return out


def _predecessor(
    row: int, spans: Spans, lines: dict[Key, _Line], sources: dict[int, list[int]], trainers: Set[int]
) -> int:
    step = int(spans.step[row])
    stage = spans.names["stage"][spans.stage[row]]
    keys: list[Key] = [("process", int(spans.process[row])), ("trace", int(spans.trace_id[row]))]
    if spans.process[row] in trainers:
        keys += [("step", step), *(("trace", trace) for trace in sources.get(step, []))]
    if stage in GENERATING:
        keys.append(("version", int(spans.policy_version[row])))
    if stage == "weight_sync":
        keys.append(UPDATES)
    best, latest = -1, -1
    for key in keys:
        line = lines.get(key)
        if line is None:
            continue
        at = int(np.searchsorted(line.ends, spans.t_start[row], side="right")) - 1
        if at >= 0 and line.ends[at] > latest:
            best, latest = int(line.rows[at]), int(line.ends[at])
    return best


@figure
class CriticalPath(TimeMeasure):
    """Seconds of the chain of spans that the window's last optimizer step waited for, waits between them left out. In
    one synchronous process it is all the work up to that step."""

    tag, title, unit, direction, source = "critical_path_seconds", "Critical path", "s", "lower", "12.3.5"
    needs = (SPAN_TIMES, "spans.trace_id", "spans.step", "trained.step")

    def compute(self, view: CellView) -> Value:
        """The chain's length."""
        chain = critical_path(view)
        return self.value(float(chain.seconds.sum()), len(chain))


@figure
class CriticalShare(TimeMeasure):
    """Share of the critical path that each stage takes: making a stage faster that has none of it changes no period."""

    tag, title, unit, direction, source = "critical_path_share", "Critical path, by stage", "share", "none", "12.3.5"
    needs = (SPAN_TIMES, "spans.trace_id", "spans.step", "trained.step")
    variants = "stage"

    def compute(self, view: CellView) -> list[Value]:
        """One value a stage that is on it."""
        chain = critical_path(view)
        whole = float(chain.seconds.sum())
        stages = sorted(set(chain.stage_names()))
        parts = {stage: chain.of(stage) for stage in stages}
        return [self.ratio(float(p.seconds.sum()), whole, len(p), variant=stage) for stage, p in parts.items()]


@figure
class PoolUtilisation(TimeMeasure):
    """Share of the window in which a device runs a span that is neither waiting nor the probe's own work. In one
    synchronous process it is 1 less the unattributed share and that work's."""

    tag, title, unit, direction, source = "pool_utilisation", "Utilisation of a pool", "share", "higher", "12.3.5"
    needs = (SPAN_TIMES, "spans.device", "manifest.window")
    variants = "device"

    def compute(self, view: CellView) -> list[Value]:
        """One value a device."""
        window, spans = view.window, view.tables.spans
        busy = spans.where(~spans.is_in(*IDLE))
        out = []
        for number, device in enumerate(busy.names["device"]):
            pool = busy.where(busy.device == number)
            covered = pool.covered_seconds(window.t_start, window.t_end)
            out.append(self.ratio(covered, window.seconds, len(pool), variant=device))
        return out


def batch_ends(view: CellView) -> Array:
    """When the last optimizer step of each generated batch ended, of the batches that end in the window, in order."""
    trained, rollouts, updates = view.tables.trained, view.tables.rollouts, view.updates
    rows = view.trained & (trained.rollout >= 0)
    last = np.full(len(rollouts.traces), -1)
    np.maximum.at(last, rollouts.trace[trained.rollout[rows]], trained.step[rows])
    steps = np.unique(last[last >= 0])
    ends: Array = updates["t_end"][np.isin(updates["step"], steps)]
    return ends


@figure
class Period(TimeMeasure):
    """Steady-state period: median seconds between the ends of the last optimizer steps of successive generated
    batches. In one synchronous process it is the wall time of a batch."""

    tag, title, unit, direction, source = "period_seconds", "Steady-state period", "s", "lower", "12.3.1"
    needs = ("updates.t_end", "trained.step", "rollouts.trace_id")

    def compute(self, view: CellView) -> Value:
        """Measured; the two predictions stand beside it."""
        gaps = np.diff(batch_ends(view)) / 1e9
        if not len(gaps):
            return self.none("fewer than two generated batches end in the window")
        return self.value(float(np.median(gaps)), len(gaps))


ROLLOUT_PARTS, TRAIN_PARTS = ("rollout", "reward"), ("logp", "train", "sync")


def two_stages(view: CellView) -> tuple[float, float, int]:
    """G (rollout and reward) in seconds a batch generated in the window, T (log-probs, training, synchronisation) in
    seconds a batch trained on in it, and how many the latter are. Of workers side by side the time that at least one
    works counts, not the sum.

    Raises:
        UnmeasuredError: no batch was generated, or none trained on.
    """
    made = len(np.unique(view.spans.of(*GENERATING).trace_id))
    trained = view.tables.trained
    rows = view.trained & (trained.rollout >= 0)
    used = len(np.unique(view.tables.rollouts.trace[trained.rollout[rows]]))
    if not made or not used:
        raise UnmeasuredError("no batch was generated in the window, or none trained on")
    rollout, train = (
        view.spans.of(*(stage for part in parts for stage in PARTS[part])).union_seconds()
        for parts in (ROLLOUT_PARTS, TRAIN_PARTS)
    )
    return rollout / made, train / used, used


class Predicted(TimeMeasure):
    """A prediction from G and T."""

    unit = "s"
    direction = "none"
    source = "12.3.1"
    needs = ("spans.stage", SPAN_TIMES)


@figure
class PeriodSequential(Predicted):
    """Predicted period where nothing overlaps: C_seq = G + T, from the stages' mean seconds a batch."""

    tag, title = "period_sequential_seconds", "Predicted period, sequential"

    def compute(self, view: CellView) -> Value:
        """G + T."""
        rollout, train, batches = two_stages(view)
        return self.value(sequential_period(rollout, train), batches)


@figure
class PeriodOverlapped(Predicted):
    """Predicted period where rollout and training overlap: C_pipe = max(G, T)."""

    tag, title = "period_overlapped_seconds", "Predicted period, overlapped"

    def compute(self, view: CellView) -> Value:
        """max(G, T)."""
        rollout, train, batches = two_stages(view)
        return self.value(overlapped_period(rollout, train), batches)


@figure
class RunSequential(Predicted):
    """Predicted seconds of the whole run, warm-up included, where nothing overlaps: n (G + T) for the n batches that it
    trains on, G and T from all spans."""

    tag, title = "run_sequential_seconds", "Predicted run, sequential"

    def compute(self, view: CellView) -> Value:
        """n C_seq."""
        rollout, train, batches = two_stages(view.whole_run())
        return self.value(batches * sequential_period(rollout, train), batches)


@figure
class RunOverlapped(Predicted):
    """Predicted seconds of the whole run, warm-up included, where rollout and training overlap:
    T_n = G + T + (n - 1) max(G, T) for the n batches that it trains on."""

    tag, title = "run_overlapped_seconds", "Predicted run, overlapped (T_n)"

    def compute(self, view: CellView) -> Value:
        """T_n."""
        rollout, train, batches = two_stages(view.whole_run())
        return self.value(pipeline_total(rollout, train, batches), batches)


@figure
class RunSeconds(TimeMeasure):
    """Measured seconds of the whole run, warm-up included, from its first batch's start to the end of its last step's
    work; the two predictions stand beside it."""

    tag, title, unit, direction, source = "run_seconds", "Wall time of the run", "s", "lower", "12.3.1"
    needs = ("manifest.window", "updates.t_end", SPAN_TIMES)

    def compute(self, view: CellView) -> Value:
        """The window with no warm-up dropped."""
        whole = view.whole_run()
        return self.value(whole.window.seconds, whole.steps)
