"""Puts the parts of a simulated loop together and runs it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import simpy

from harness.errors import SystemFailure
from harness.simulate.collector import Collector
from harness.simulate.draws import Draws
from harness.simulate.publisher import Process, Publisher
from harness.simulate.queue import RolloutQueue
from harness.simulate.rates import batch_tokens, check, rates_of
from harness.simulate.ratios import Ratios
from harness.simulate.recorder import Recorder, Step
from harness.simulate.records import Group, Sample
from harness.simulate.replica import Replica
from harness.simulate.saved import BEGINNING, QUEUE_DISCARDED, Saved
from harness.simulate.settings import Settings
from harness.simulate.staleness import StalenessPolicy

STREAMS = ("lengths", "prompts", "verdicts", "jitter", "ratios", "failures")
"""Each has its own generator, so that the same work is drawn whatever the overlap."""
PATIENCE = 200
"""Periods without a step, by the means of the settings, after which none is to come."""


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
        rates = rates_of(settings)
        self._expected = batch_tokens(settings) * (1 / rates.arrival + 1 / rates.trainer)
        self._publisher = Publisher(self.env, settings, self._collector, recorder)
        self._step = self._version = self._depth = self._batch = 0
        self._life, self._down, self._saving = 0, False, False
        self._saved = BEGINNING
        self._news = self.env.event()
        self._end = 0.0
        self._untrained: list[Sample] = []
        self._collector.arrived = self._wake_trainer

    def run(self) -> Ended:
        """Run to the end.

        Raises:
            SystemFailure: nothing can happen any more, or nothing is trained on, and the run has not ended.
        """
        self._publisher.first(0, 0)
        trainer = self._trainer = self.env.process(self._work())
        self._begin_failures()
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

    def _lose_patience(self) -> None:
        """Data may arrive for ever and none be trained on: each record too old when its batch is full, each batch cut
        short by the next failure."""
        waited = self.env.now - self._end
        if waited > PATIENCE * self._expected:
            raise SystemFailure(
                f"no optimizer step in {waited:,.0f} simulated seconds, where the rates let one through every "
                f"{self._expected:,.1f}: what is generated is dropped or lost before a batch is full"
            )

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
        while not self._over:
            start, starved = self.env.now, self._queue.batches(0) < 1
            while (groups := self._take()) is None:
                self._lose_patience()
                self._news = self.env.event()
                yield self._news
            samples = [sample for group in groups for sample in group.samples]
            self._recorder.waited(start, self.env.now, len(samples))
            batch, self._batch = self._batch, self._batch + 1
            self._recorder.taken(batch, groups, self._version, self.env.now)
            self._collector.turn += self.settings.batch.updates
            self._collector.taken += 1
            self._rebalance(starved)
            self._collector.fill()
            yield from self._learn(batch, samples)
            self._collector.turn = self._version
            yield from self._publisher.publish(self._version)
            yield from self._keep()

    def _work(self) -> Process:
        """Train, and after each death of the job restore and go on."""
        while True:
            try:
                yield from self._train()
            except simpy.Interrupt:
                yield from self._restart()
            else:
                return

    def _keep(self) -> Process:
        """Save, if it is time and nothing is being saved in the background."""
        asked = self.settings.checkpoint
        if not asked.every or self._batch % asked.every or self._saving:
            return
        self._saving = True
        waiting = [(group, list(group.samples)) for group in self._queue.groups]
        state = Saved(self._step, self._version, self._publisher.number, self._batch, waiting)
        self._recorder.saved(state.batches(self.settings.batch))
        start, life = self.env.now, self._life
        done = self.env.timeout(asked.seconds)
        done.callbacks.append(lambda _: self._kept(state, start, life))
        if not asked.background:
            yield done

    def _kept(self, state: Saved, start: float, life: int) -> None:
        if life == self._life:
            self._saved, self._saving = state, False
            self._recorder.checkpointed(state.step, state.version, start, self.env.now)

    def _begin_failures(self) -> None:
        if self.settings.rollout.mtbf_s is not None:
            self.env.process(self._replicas_fail(self.settings.rollout.mtbf_s / len(self._collector.replicas)))
        if self.settings.trainer.mtbf_s is not None:
            self.env.process(self._job_fails(self.settings.trainer.mtbf_s))

    def _replicas_fail(self, between: float) -> Process:
        while True:
            yield self.env.timeout(self._failures.exponential(between))
            replica = self._collector.replicas[int(self._failures.integers(len(self._collector.replicas)))]
            if replica.down or self._down:
                continue
            worker = replica.worker
            lost = replica.die()
            self._collector.gone(replica)
            self._recorder.lost(lost, worker, self.env.now)
            self._collector.ask_again(lost)
            self._publisher.hand_over()
            self._collector.fill()
            self.env.process(self._repair(replica, self._life))

    def _repair(self, replica: Replica, life: int) -> Process:
        yield self.env.timeout(self.settings.rollout.repair_s)
        if life == self._life and replica.down:
            replica.revive()
            self._collector.back(replica)

    def _job_fails(self, between: float) -> Process:
        while True:
            yield self.env.timeout(self._failures.exponential(between))
            if not self._down and not self._trainer.processed and self._trainer.is_alive:
                self._down = True
                self._trainer.interrupt()

    def _restart(self) -> Process:
        """The job died: what is in no checkpoint is lost; restore, and go on."""
        self._life, self._saving = self._life + 1, False
        self._publisher.stop()
        died, saved = self.env.now, self._saved
        kept = saved.waiting if self.settings.checkpoint.queue == "keep" else []
        held = {group for group, _ in saved.waiting}
        requests = [request for replica in self._collector.replicas for request in replica.die()]
        waiting = [s for group in self._queue.groups if group not in held for s in group.samples]
        self._recorder.died(requests, waiting, died)
        self._queue.clear()
        self._collector.reset(saved.version, saved.batch)
        yield self.env.timeout(self.settings.trainer.restart_s)
        for replica in self._collector.replicas:
            replica.revive()
            replica.serve(saved.version, 0.0)
        now = self.env.now
        self._step, self._version, self._batch, self._down = saved.step, saved.version, saved.batch, False
        self._recorder.restarted(saved.step, saved.version, died, now)
        self._publisher.first(saved.version, saved.publication + 1)
        if not kept:
            gone = [(sample, QUEUE_DISCARDED) for _, samples in saved.waiting for sample in samples]
            self._recorder.dropped(gone, now)
        self._queue.restore(kept, now)
        self._collector.fill()

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
                at = (self._step, batch, epoch, minibatch, self._version, self._publisher.number)
                self._recorder.stepped(Step(*at, part, begin, middle, self.env.now, scale))
                self._step, self._version, self._end = self._step + 1, self._version + 1, self.env.now
        self._recorder.batch_done(batch, version, samples[:trained], self.env.now)
        self._untrained = list(samples[trained:])
