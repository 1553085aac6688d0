"""What a trainer worker of verl's saw since it was last asked. Imports no framework.

verl's controlling process, which writes the run's history, takes it from there.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from adapters.verl.processes import device_of
from harness.probe import Probe
from harness.probe.faults import Faults
from harness.probe.probe import Span

Row = dict[str, Any]


class Watch:
    """One trainer worker's spans and records.

    Attributes:
        step: optimizer steps taken, the next one's number; version: those of them that were applied.
        published: hand-overs of weights so far.
        busy: (start, end) of each piece of work since it was last taken, perf_counter_ns.
    """

    def __init__(self, probe: Probe) -> None:
        self._probe, self._faults = probe, Faults.of(probe.cell, "trainer-0")
        self._device = device_of(probe.cell, "trainer")
        self.step = self.version = self.published = 0
        self.trace_id = "startup"
        self._trained: list[Row] = []
        self._updates: list[Row] = []
        self._publications: list[Row] = []
        self.busy: list[tuple[int, int]] = []

    @property
    def enabled(self) -> bool:
        """False in the bare twin of a run."""
        return self._probe.enabled

    @contextmanager
    def span(self, stage: str) -> Iterator[Span]:
        """Time a stage of this process."""
        where: dict[str, Any] = {
            "trace_id": self.trace_id,
            "policy_version": self.version,
            "step": self.step,
            "device": self._device,
        }
        start = time.perf_counter_ns()
        with self._probe.span(stage, **where) as span:
            yield span
        self.busy.append((start, time.perf_counter_ns()))

    def begins(self) -> None:
        """An optimizer step begins."""
        self._faults.at("trainer.update", self.step)

    def trained(self, rows: list[Row]) -> None:
        """A micro-batch went forward and backward."""
        self._trained += rows

    def updated(self, row: Row) -> None:
        """An optimizer step ended."""
        row |= {"step": self.step, "policy_version_before": self.version}
        for trained in self._trained[len(self._trained) - row["records"] :]:
            trained |= {"step": self.step, "policy_version": self.version, "t_step_start": row["t_start"]}
        self.step += 1
        self.version += row["applied"]
        self._updates.append(row | {"policy_version_after": self.version})

    def handed_over(self, row: Row) -> None:
        """Weights were given to the rollout engine."""
        self._publications.append(row | {"published_version": self.published, "policy_version": self.version})
        self.published += 1

    def take(self) -> dict[str, list[Any]]:
        """All records since the last call."""
        taken: dict[str, list[Any]] = {
            "trained": self._trained,
            "updates": self._updates,
            "publications": self._publications,
            "busy": self.busy,
        }
        self._trained, self._updates, self._publications, self.busy = [], [], [], []
        return taken
