"""What waits between collectors and trainer, what closes admission, and who waits for whom [12.3.4]."""

from typing import Any, ClassVar

import numpy as np

from harness.measure.columns import Array
from harness.measure.measure import Measure, UnmeasuredError, figure
from harness.measure.queue import DEPTHS, OPEN, QueueLog
from harness.measure.spans import WAITING
from harness.measure.values import Value
from harness.measure.view import CellView


class QueueMeasure(Measure):
    """A figure of the queue."""

    topic = "queue"
    source = "12.3.4"

    def values(self, view: CellView) -> list[Value]:
        """Absent, not zero, where batches wait in no queue."""
        reason = view.absent("queue_wait")
        if reason is not None and not len(view.tables.queue):
            return self.nothing(reason, absent=True)
        return super().values(view)


class DepthMeasure(QueueMeasure):
    """A figure of the depth in each of its units."""

    unit = "in the variant's unit"
    variants, members = "unit", DEPTHS

    def nothing(self, reason: str, **fields: Any) -> list[Value]:
        """Each in its unit."""
        return [self.none(reason, variant=unit, unit=unit, **fields) for unit in DEPTHS]


def events(view: CellView) -> QueueLog:
    """The queue's events.

    Raises:
        UnmeasuredError: there is none.
    """
    if not len(view.tables.queue):
        raise UnmeasuredError("the ledger has no event of a queue")
    return view.tables.queue


def waiting_seconds(view: CellView) -> float:
    """How much of the window the trainer waited for data.

    Raises:
        UnmeasuredError: waiting has no span.
    """
    spans = view.tables.spans.of(*WAITING)
    if not len(spans):
        raise UnmeasuredError("no span of queue_wait: how long the trainer waited was not measured")
    return spans.covered_seconds(view.window.t_start, view.window.t_end)


@figure
class ArrivalRate(QueueMeasure):
    """Arrival rate: policy tokens that came into the queue in the window over its wall-clock seconds; what a restart
    put back does not count."""

    tag, title, unit, direction = "queue_arrival_tokens_per_second", "Arrival rate", "tokens/s", "none"
    needs = ("queue.event", "queue.tokens", "queue.t", "manifest.window")

    def compute(self, view: CellView) -> Value:
        """Over the window."""
        log = events(view)
        rows = log.arrivals() & log.inside(view.window)
        return self.ratio(float(log.tokens[rows].sum()), view.window.seconds, int(log.records[rows].sum()))


def service(view: CellView) -> tuple[float, float, int]:
    """Policy tokens that the trainer took out of the queue in the window, the seconds in which it did not wait for
    them, and how many records they were."""
    log = events(view)
    rows = log.are("get") & log.inside(view.window)
    busy = view.window.seconds - waiting_seconds(view)
    return float(log.tokens[rows].sum()), busy, int(log.records[rows].sum())


@figure
class ServiceRate(QueueMeasure):
    """Service rate: policy tokens that the trainer took out of the queue in the window over the seconds in which it did
    not wait for data, so what it would take if there always were some."""

    tag, title, unit, direction = "queue_service_tokens_per_second", "Service rate", "tokens/s", "none"
    needs = ("queue.event", "queue.tokens", "queue.t", "spans.stage", "manifest.window")

    def compute(self, view: CellView) -> Value:
        """Over the busy time."""
        return self.ratio(*service(view))


@figure
class Load(QueueMeasure):
    """Arrival rate over service rate: near 1 the queue is full and its limits hold collectors back, well below 1 the
    trainer starves. Over 1 for long, no queue is deep enough."""

    tag, title, unit, direction = "queue_load", "Load of the queue", "ratio", "none"
    needs = ("queue.event", "queue.tokens", "queue.t", "spans.stage", "manifest.window")

    def compute(self, view: CellView) -> Value:
        """One rate over the other."""
        arrivals = ArrivalRate().compute(view)
        tokens, busy, records = service(view)
        if arrivals.value is None or not tokens:
            return self.none("nothing left the queue in the window")
        return self.ratio(arrivals.value, tokens / busy, records)


class Depth(DepthMeasure):
    """A quantile of the depth over time."""

    direction = "none"
    needs = ("queue.depth_records, queue.depth_tokens, queue.depth_bytes", "queue.t", "manifest.window")
    share: ClassVar[float]

    def compute(self, view: CellView) -> list[Value]:
        """Weighed by how long each depth lasted; the queue is empty until the first event."""
        log = events(view)
        seconds: Array = np.append(log.seconds(view.window), log.seconds_before(view.window))
        out = []
        for unit in DEPTHS:
            depth: Array = np.append(log.depth[unit], 0)
            out.append(self.value(_lasting(depth, seconds, self.share), len(log), variant=unit, unit=unit))
        return out


def _lasting(values: Array, seconds: Array, share: float) -> float:
    """The smallest value that was not exceeded for at least that share of the time."""
    some = seconds > 0
    order = np.argsort(values[some], kind="stable")
    ordered, reached = values[some][order], np.cumsum(seconds[some][order])
    place = int(np.searchsorted(reached, share * reached[-1] * (1 - 1e-12)))
    return float(ordered[min(place, len(ordered) - 1)])


@figure
class DepthMedian(Depth):
    """Median over the window's time of the depth of the queue, in records, policy tokens and bytes."""

    tag, title, share = "queue_depth_p50", "Queue depth, median", 0.5


@figure
class DepthP95(Depth):
    """95th percentile over the window's time of the depth of the queue, in records, policy tokens and bytes."""

    tag, title, share = "queue_depth_p95", "Queue depth, p95", 0.95


@figure
class DepthMax(Depth):
    """Largest depth of the queue in the window, in records, policy tokens and bytes."""

    tag, title, share = "queue_depth_max", "Queue depth, largest", 1.0


@figure
class Overshoot(DepthMeasure):
    """Largest growth of the queue's depth after a limit closed admission in the window: what was in flight still came
    in. Limits stop new work and cancel none."""

    tag, title, direction = "queue_overshoot", "Overshoot of a closed queue", "lower"
    needs = ("queue.event", "queue.depth_records, queue.depth_tokens, queue.depth_bytes")

    def compute(self, view: CellView) -> list[Value]:
        """Over all closings."""
        log = events(view)
        closings = np.flatnonzero(log.are("close") & log.inside(view.window))
        turns = np.flatnonzero(log.are("close", "open"))
        ends = np.append(turns, len(log))[np.searchsorted(turns, closings, side="right")]
        out = []
        for unit in DEPTHS:
            depth = log.depth[unit]
            growth = [int(depth[start:end].max() - depth[start]) for start, end in zip(closings, ends, strict=True)]
            out.append(self.value(max(growth, default=0), len(growth), variant=unit, unit=unit))
        return out


@figure
class Backpressure(QueueMeasure):
    """Share of the window in which new work was not admitted, in all and by the limit that forbade it (records, tokens,
    bytes, age_s, lag, lag_bound)."""

    tag, title, unit, direction = "backpressure_share", "Time under backpressure", "share", "none"
    needs = ("queue.event", "queue.reason", "queue.t", "manifest.window")
    variants = "limit"

    def compute(self, view: CellView) -> list[Value]:
        """All, then by limit."""
        log = events(view)
        seconds, whole = log.seconds(view.window), view.window.seconds
        closings = log.are("close") & log.inside(view.window)
        found = [self.ratio(float(seconds[log.limit != OPEN].sum()), whole, int(closings.sum()))]
        for code in sorted(set(log.limit.tolist()) - {OPEN}, key=lambda code: log.reasons[code]):
            number = int((closings & (log.reason == code)).sum())
            shut = float(seconds[log.limit == code].sum())
            found.append(self.ratio(shut, whole, number, variant=log.reasons[code]))
        return found


@figure
class Starving(QueueMeasure):
    """Share of the window in which the trainer waited for data. More rollout workers help only where it is rollout that
    limits, not the verifier or a limit of the queue."""

    tag, title, unit, direction = "starving_share", "Trainer starving", "share", "lower"
    needs = ("spans.stage", "spans.t_start, spans.t_end", "manifest.window")

    def compute(self, view: CellView) -> Value:
        """Of the wall clock."""
        waited = waiting_seconds(view)
        return self.ratio(waited, view.window.seconds, len(view.spans.of(*WAITING)))
