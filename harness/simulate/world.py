"""Puts the parts of a simulated loop together and runs it."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import simpy

from harness.errors import SystemFailure
from harness.simulate.collector import Collector
from harness.simulate.draws import Draws
from harness.simulate.queue import RolloutQueue
from harness.simulate.rates import check
from harness.simulate.ratios import Ratios
from harness.simulate.recorder import Recorder, Step
from harness.simulate.records import Group, Sample
from harness.simulate.settings import Settings
from harness.simulate.staleness import StalenessPolicy

Process: TypeAlias = Generator[simpy.Event, Any, None]
STREAMS = ("lengths", "prompts", "verdicts", "jitter", "ratios", "failures")
"""Each has its own generator, so that the same work is drawn whatever the overlap."""


@dataclass(frozen=True)
class Ended:
    """How a simulation ended: the simulated seconds of its last optimizer step, its steps, and the events that it
    took."""

    seconds: float
    steps: int
    events: int


class World:
    """One simulated cell. `run` may be called once."""

    def __init__(self, settings: Settings, recorder: Recorder) -> None:
        """Raises UserError where it could not be simulated to any use; see `harness.simulate.rates.check`."""
        check(settings)
        self.settings, self._recorder = settings, recorder
        self.env = simpy.Environment()
        rngs = [np.random.default_rng(seed) for seed in np.random.SeedSequence(settings.seed).spawn(len(STREAMS))]
        self._policy = StalenessPolicy(settings)
        self._queue = RolloutQueue(settings, settings.group_size * settings.response_tokens.mean, recorder)
        self._collector = Collector(self.env, settings, self._queue, self._policy, recorder, rngs[:3])
        self._jitter = Draws(settings.trainer.jitter, rngs[3])
        self._ratios = Ratios(settings.synthetic, settings.staleness, rngs[4])
        self._failures = rngs[5]
        self._step = self._version = self._publications = self._depth = 0
        self._news = self.env.event()
        self._served = self.env.event()
        self._ready: tuple[int, float, float] | None = None
        self._end = 0.0
        self._untrained: list[Sample] = []
        self._collector.arrived = self._wake_trainer
        self._collector.idle = self._hand_over

    def run(self) -> Ended:
        """Run to the end.

        Raises:
            SystemFailure: nothing can happen any more and the run has not ended.
        """
        self._recorder.published(0, 0, (0.0, 0.0), (0.0, 0.0))
        trainer = self.env.process(self._train())
        self._collector.fill()
        events = 0
        step = self.env.step
        try:
            while not trainer.processed:
                step()
                events += 1
        except simpy.core.EmptySchedule as error:
            raise SystemFailure(f"the simulated loop stands still at {self.env.now:.1f} s: {self._why()}") from error
        self._collector.ended = True
        while not self._collector.quiet and self.env.peek() < float("inf"):
            step()
            events += 1
        waiting = [sample for group in self._queue.groups for sample in group.samples]
        self._recorder.left([*waiting, *self._untrained], self.env.now)
        return Ended(self._end, self._step, events)

    def _why(self) -> str:
        closed = self._queue.closed
        return f"admission is closed by {closed}" if closed else f"{len(self._queue)} groups wait, and no more come"

    def _wake_trainer(self) -> None:
        if not self._news.triggered:
            self._news.succeed()

    @property
    def _over(self) -> bool:
        settings = self.settings
        timely = settings.seconds is not None and self.env.now >= settings.seconds
        return timely or (settings.steps is not None and self._step >= settings.steps)

    def _train(self) -> Process:
        batch = 0
        while not self._over:
            groups = None
            start, starved = self.env.now, self._queue.batches(0) < 1
            while (groups := self._take()) is None:
                self._news = self.env.event()
                yield self._news
            samples = [sample for group in groups for sample in group.samples]
            self._recorder.waited(start, self.env.now, len(samples))
            self._recorder.taken(batch, groups, self._version, self.env.now)
            self._collector.turn += self.settings.batch.updates
            self._collector.taken += 1
            self._rebalance(starved)
            self._collector.fill()
            yield from self._learn(batch, samples)
            self._collector.turn = self._version
            yield from self._publish()
            batch += 1

    def _take(self) -> list[Group] | None:
        """A batch, without what is too stale; the barrier takes all that there is, once nothing is in flight."""
        if self._policy.rejects_any:
            version = self._version
            dropped = self._queue.drop(
                lambda sample, waited: self._policy.rejects(sample, version, waited), self.env.now
            )
            if dropped:
                self._recorder.dropped(dropped, self.env.now)
                self._collector.fill()
        if self.settings.synchronous and not self._collector.quiet:
            return None
        return self._queue.get(self.env.now, everything=self.settings.synchronous)

    def _rebalance(self, starved: bool) -> None:
        growth, self._depth = self._queue.tokens - self._depth, self._queue.tokens
        collector = self._collector
        collector.limit = self._policy.rebalanced(collector.limit, growth, starved, collector.most)

    def _learn(self, batch: int, samples: Sequence[Sample]) -> Process:
        asked, rule = self.settings.trainer, self.settings.batch
        version, start = self._version, self.env.now
        tokens = sum(sample.length for sample in samples)
        if asked.logprob_s_per_token:
            yield self.env.timeout(tokens * asked.logprob_s_per_token * self._jitter.next())
            self._recorder.scored(batch, version, start, self.env.now, samples)
        epochs, scale = self._policy.epochs(samples, version), 1.0
        if samples and self.settings.staleness.ess_floor is not None:
            token, sequence, _ = self._ratios.shares(samples, version)
            scale = self._policy.lr_scale(self._ratios.share(token, sequence))
        size = max(-(-len(samples) // rule.minibatches), 1)
        trained = 0
        for epoch in range(epochs):
            for minibatch, first in enumerate(range(0, len(samples), size)):
                if self.settings.steps is not None and self._step >= self.settings.steps:
                    break
                part = samples[first : first + size]
                trained = max(trained, first + len(part))
                begin = self.env.now
                work = asked.fixed_s + sum(sample.length for sample in part) * asked.s_per_token
                yield self.env.timeout(work * self._jitter.next())
                middle = self.env.now
                yield self.env.timeout(asked.optimizer_s)
                served, number = self._collector.served, self._publications
                step = Step(
                    self._step, batch, epoch, minibatch, self._version, served, number, part, begin, middle,
                    self.env.now, scale,
                )  # fmt: skip
                self._recorder.stepped(step)
                self._step, self._version, self._end = self._step + 1, self._version + 1, self.env.now
        self._recorder.batch_done(batch, version, samples[:trained], self.env.now)
        self._untrained = list(samples[trained:])

    def _publish(self) -> Process:
        """Prepare the next version once the one before is served; the trainer does not wait for this one, but at a
        barrier."""
        if self._ready is not None:
            yield self._served
        start = self.env.now
        if self.settings.publication.prepare_s:
            yield self.env.timeout(self.settings.publication.prepare_s)
        self._ready = (self._version, start, self.env.now)
        self._served = self.env.event()
        if self.settings.publication.in_flight == "pause":
            self._hand_over()
        else:
            self._collector.staged = True
            if not self._collector.running:
                self._hand_over()
        if self.settings.synchronous and not self._served.triggered:
            yield self._served

    def _hand_over(self) -> None:
        """All replicas take up what is staged, at once."""
        seconds = self.settings.publication.activate_s
        assert self._ready is not None
        pauses = self.settings.publication.in_flight == "pause"
        if pauses:
            for replica in self._collector.replicas:
                replica.serve(self._ready[0], seconds)
        began = self.env.now
        self.env.timeout(seconds).callbacks.append(lambda _: self._activated(began))

    def _activated(self, began: float) -> None:
        assert self._ready is not None
        version, start, prepared = self._ready
        if self.settings.publication.in_flight == "wait":
            for replica in self._collector.replicas:
                replica.serve(version, 0.0)
        self._publications += 1
        self._recorder.published(self._publications, version, (start, prepared), (began, self.env.now))
        self._ready, self._collector.served, self._collector.staged = None, version, False
        self._served.succeed()
        self._collector.fill()
