"""The queue between collectors and trainer as columns, and how long it was in each state [12.3.4]."""

from dataclasses import dataclass

import numpy as np

from harness.contract import CellLedger
from harness.contract.attempts import split_name
from harness.contract.schema import QUEUE_EVENTS
from harness.measure.columns import Array, codes, integers
from harness.measure.window import Window

OPEN = -1
"""Stands for open admission in a column of limits."""
RESTORED = "restored"
"""Why a put is no arrival: a restart put back what waited when it was checkpointed."""
DEPTHS = ("records", "tokens", "bytes")


@dataclass(frozen=True)
class QueueLog:
    """One element an event, in the order of attempts and times.

    Attributes:
        event: position in the contract's list of them; records, tokens: how many it moved.
        depth: after the event, in each unit of `DEPTHS`.
        reason: code of `reasons`; -1 where none is given.
        limit: the code of the limit that keeps admission closed after the event; `OPEN` where it is open.
        until: when the next event of the same attempt is (ns); of an attempt's last event, of that itself. Of the very
            last event it is the largest integer: that state lasts.
    """

    t: Array
    event: Array
    records: Array
    tokens: Array
    depth: dict[str, Array]
    reason: Array
    reasons: list[str]
    limit: Array
    until: Array

    def __len__(self) -> int:
        return len(self.t)

    def are(self, *names: str) -> Array:
        """Which events are of these kinds."""
        same: Array = np.isin(self.event, [QUEUE_EVENTS.index(name) for name in names])
        return same

    def inside(self, window: Window) -> Array:
        """Which events are in the window."""
        rows: Array = (self.t > window.t_start) & (self.t <= window.t_end)
        return rows

    def arrivals(self) -> Array:
        """Which events put something in that had not been in before."""
        known = [code for code, text in enumerate(self.reasons) if text == RESTORED]
        rows: Array = self.are("put") & ~np.isin(self.reason, known)
        return rows

    def seconds(self, window: Window) -> Array:
        """How much of the window the state after each event lasted."""
        begin, end = np.maximum(self.t, window.t_start), np.minimum(self.until, window.t_end)
        lasted: Array = np.maximum(end - begin, 0) / 1e9
        return lasted

    def seconds_before(self, window: Window) -> float:
        """How much of the window passed before the first event: nothing waited and admission was open."""
        return max(int(min(self.t[0], window.t_end)) - window.t_start, 0) / 1e9


def read_queue(ledger: CellLedger) -> QueueLog:
    """Read the `queue` table."""
    path = ledger.path("queue")
    table = ledger.table("queue")
    t = integers(table["t"])
    process, processes = codes(path, "process")
    attempts = np.array([split_name(name)[1] for name in processes], dtype=np.int64)
    attempt = attempts[process]
    order = np.lexsort((np.arange(len(t)), t, attempt))
    event, names = codes(path, "event")
    places = np.array([QUEUE_EVENTS.index(name) for name in names], dtype=np.int8)
    reason, reasons = codes(path, "reason")
    event, reason, t, attempt = places[event][order], reason[order], t[order], attempt[order]
    return QueueLog(
        t=t,
        event=event,
        records=integers(table["records"])[order],
        tokens=integers(table["tokens"])[order],
        depth={unit: integers(table[f"depth_{unit}"])[order] for unit in DEPTHS},
        reason=reason,
        reasons=reasons,
        limit=_limits(event, reason, attempt),
        until=_until(t, attempt),
    )


def _limits(event: Array, reason: Array, attempt: Array) -> Array:
    """What holds after each event: the last close or open of its attempt."""
    limit: Array = np.full(len(event), OPEN, dtype=np.int64)
    current, before = OPEN, -1
    close, opened = QUEUE_EVENTS.index("close"), QUEUE_EVENTS.index("open")
    for row in range(len(event)):
        if attempt[row] != before:
            current, before = OPEN, attempt[row]
        if event[row] == close:
            current = int(reason[row])
        elif event[row] == opened:
            current = OPEN
        limit[row] = current
    return limit


def _until(t: Array, attempt: Array) -> Array:
    """The next event's time, within an attempt."""
    until: Array = np.append(t[1:], np.iinfo(np.int64).max)[: len(t)]
    ends = np.flatnonzero(attempt[1:] != attempt[:-1])
    until[ends] = t[ends]
    return until
