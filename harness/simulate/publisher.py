"""Publication of weights: prepared by the trainer, taken up by all replicas at once, at a barrier or in a pause."""

from collections.abc import Generator
from typing import Any, TypeAlias

import simpy

from harness.simulate.collector import Collector
from harness.simulate.recorder import Recorder
from harness.simulate.settings import Settings

Process: TypeAlias = Generator[simpy.Event, Any, None]


class Publisher:
    """`number` counts publications; the collector's `served` is the policy version that all replicas serve."""

    def __init__(self, env: simpy.Environment, settings: Settings, collector: Collector, recorder: Recorder) -> None:
        self._env, self._asked, self._collector, self._recorder = env, settings.publication, collector, recorder
        self._barrier = settings.synchronous
        self._waits = self._asked.in_flight == "wait"
        self._ready: tuple[int, float, float] | None = None
        self._served = env.event()
        self._handing = False
        self._life = 0
        self.number = 0
        collector.idle = self.hand_over

    def first(self, version: int, number: int) -> None:
        """Serve a version from now on, as a job that begins, or begins anew."""
        now = self._env.now
        self.number = number
        self._recorder.published(number, version, (now, now), (now, now))

    def stop(self) -> None:
        """The job died: what was being published is not."""
        self._ready, self._handing, self._life = None, False, self._life + 1

    def publish(self, version: int) -> Process:
        """Prepare a version once the one before is served; the trainer does not wait for this one, but at a barrier."""
        if self._ready is not None:
            yield self._served
        start = self._env.now
        if self._asked.prepare_s:
            yield self._env.timeout(self._asked.prepare_s)
        self._ready = (version, start, self._env.now)
        self._served = self._env.event()
        self._collector.staged = self._waits
        self.hand_over()
        if self._barrier and not self._served.triggered:
            yield self._served

    def hand_over(self) -> None:
        """Begin to activate what is staged, unless requests in flight have to end first."""
        if self._ready is None or self._handing or (self._waits and self._collector.running):
            return
        self._handing = True
        if not self._waits:
            for replica in self._collector.replicas:
                replica.serve(self._ready[0], self._asked.activate_s)
        began, life = self._env.now, self._life
        self._env.timeout(self._asked.activate_s).callbacks.append(lambda _: self._activated(began, life))

    def _activated(self, began: float, life: int) -> None:
        if life != self._life or self._ready is None:
            return
        version, start, prepared = self._ready
        if self._waits:
            for replica in self._collector.replicas:
                replica.serve(version, 0.0)
        self.number, self._ready, self._handing = self.number + 1, None, False
        self._recorder.published(self.number, version, (start, prepared), (began, self._env.now))
        self._collector.served, self._collector.staged = version, False
        self._served.succeed()
        self._collector.fill()
