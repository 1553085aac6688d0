"""A probe that keeps what it is told."""

from typing import Any

from harness.probe import Probe


class KeepingProbe(Probe):
    """Writes nothing."""

    def __init__(self) -> None:
        super().__init__({"run_id": "test", "directory": "", "attempt": 0}, enabled=False)
        self.spans: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []

    def add_span(self, stage: str, t_start: int, t_end: int, *, trace_id: str, **fields: Any) -> None:
        self.spans.append({"stage": stage, "t": (t_start, t_end), "trace_id": trace_id, **fields})

    def queue(self, event: str, **row: Any) -> None:
        self.events.append({"event": event, **row})
