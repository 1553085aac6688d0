"""A clock that is in one stage, or in none, at any moment: leaf spans of the training thread, which cannot overlap."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from harness.probe import Probe


class StageClock:
    """Turns calls of `enter` into spans. What the clock and the records cost is kept out of the framework's stages: the
    records are the stage `observation`, both together are `probe_ns`.

    On a GPU the host runs ahead of the device, so a boundary would fall where the host next waits: `synchronize` is
    called before a boundary is taken, and is None on a CPU.
    """

    def __init__(self, probe: Probe, device: str, synchronize: Callable[[], None] | None) -> None:
        self.labels: dict[str, Any] = {"trace_id": "startup", "device": device}
        self.probe_ns = 0
        self._probe, self._synchronize = probe, synchronize
        self._stage: str | None = None
        self._counts: dict[str, int] = {}
        self._start = self._cpu = 0

    @property
    def started(self) -> int:
        """When the stage at hand began (perf_counter_ns)."""
        return self._start

    @property
    def stage(self) -> str | None:
        """The stage that the clock is in."""
        return self._stage

    def boundary(self) -> int:
        """`time.perf_counter_ns()`, once the device has caught up."""
        if self._synchronize is not None:
            self._synchronize()
        return time.perf_counter_ns()

    def enter(self, stage: str | None, at: int | None = None) -> int:
        """End the stage at hand and begin `stage` (None: nothing that a stage covers).

        Args:
            at: where the stage at hand ended, if the caller took the boundary and counted something since.

        Returns:
            the boundary, `time.perf_counter_ns()`.
        """
        if stage == self._stage:
            return time.perf_counter_ns()
        now = self.boundary() if at is None else at
        if self._stage is not None:
            cpu_ns = time.process_time_ns() - self._cpu
            fields = {**self.labels, **self._counts, "cpu_ns": cpu_ns}
            if "forwards" in fields:
                fields["detail"] = json.dumps({"forwards": fields.pop("forwards")})
            self._probe.add_span(self._stage, self._start, now, **fields)
        self._stage, self._counts = stage, {}
        self._cpu = time.process_time_ns()
        self._start = time.perf_counter_ns()
        self.probe_ns += self._start - now
        return now

    def count(self, **counts: int) -> None:
        """Set the counts of the stage at hand: records, input_tokens, output_tokens, policy_tokens, padded_tokens, and
        forwards, how often the weights were read."""
        self._counts.update(counts)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Work of the probe itself: the stage at hand is interrupted for it, and it has a span of its own."""
        stage = self._stage
        self.enter("observation")
        start = self._start
        try:
            yield
        finally:
            end = self.enter(stage)
            self.probe_ns += end - start
