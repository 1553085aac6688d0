"""A stage that many requests are in at once, as spans of the time in which any of them is."""

import time
from typing import Any

from harness.probe import Probe


class BusyStage:
    """Opens a span when the first request enters and closes it when the last one leaves; counts what they did.

    Spans are on disk before the last request's answer leaves: the process may be killed after.
    """

    def __init__(self, probe: Probe, stage: str) -> None:
        self._probe, self._stage = probe, stage
        self._inside = 0
        self._paused = False
        self._start: int | None = None
        self._trace_id = ""
        self._counts: dict[str, int] = {}

    def enter(self, trace_id: str, **counts: int) -> None:
        """One more request of that generated batch is in the stage."""
        if trace_id != self._trace_id:
            self._close()
        self._inside += 1
        self._trace_id = trace_id
        self._open()
        self.count(**counts)

    def count(self, **counts: int) -> None:
        """Add to the counts of the span at hand: records, input_tokens, output_tokens."""
        for name, value in counts.items():
            self._counts[name] = self._counts.get(name, 0) + value

    def leave(self) -> None:
        """One request has left."""
        self._inside -= 1
        if self._inside == 0:
            self._close()

    def pause(self) -> None:
        """The engine stops: whoever is in the stage waits, and that is none of its time."""
        self._close()
        self._paused = True

    def resume(self) -> None:
        """It goes on."""
        self._paused = False
        if self._inside:
            self._open()

    def _open(self) -> None:
        if self._start is None and not self._paused:
            self._start = time.perf_counter_ns()

    def _close(self) -> None:
        if self._start is None:
            return
        fields: dict[str, Any] = {"trace_id": self._trace_id, **self._counts}
        self._probe.add_span(self._stage, self._start, time.perf_counter_ns(), **fields)
        self._probe.flush()
        self._start, self._counts = None, {}
