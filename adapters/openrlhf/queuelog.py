"""OpenRLHF's rollout queue as events of the `queue` table.

Batches are put in by one actor and taken out by another; the taker learns when a batch was put in once it takes it.
Events are therefore written late, in the order of their times, as soon as none can come in before them.
"""

from dataclasses import dataclass

from harness.probe import Probe


@dataclass(frozen=True)
class Moved:
    """A batch that was put in or taken out at `t` (perf_counter_ns)."""

    t: int
    event: str
    records: int
    tokens: int


class QueueLog:
    """Puts and gets, reordered. OpenRLHF keeps the batches as Ray objects: their bytes are not known."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._pending: list[Moved] = []
        self._records = self._tokens = 0

    def taken(self, t_put: int, t_get: int, records: int, tokens: int) -> None:
        """A batch was put in and taken out at these times."""
        self._pending += [Moved(t_put, "put", records, tokens), Moved(t_get, "get", records, tokens)]
        self._write(t_put)

    def close(self) -> None:
        """No further event comes."""
        self._write(None)

    def _write(self, until: int | None) -> None:
        self._pending.sort(key=lambda moved: moved.t)
        while self._pending and (until is None or self._pending[0].t <= until):
            moved = self._pending.pop(0)
            way = 1 if moved.event == "put" else -1
            self._records += way * moved.records
            self._tokens += way * moved.tokens
            depths = {"depth_records": self._records, "depth_tokens": self._tokens, "depth_bytes": 0}
            self._probe.queue(moved.event, t=moved.t, records=moved.records, tokens=moved.tokens, **depths)
