"""The asynchronous loop: collectors go on while the trainer updates, at most `lag_bound` updates behind [12.1.3].

Two threads of one process conduct. The collecting one asks replicas for work, has answers scored, and puts whole
batches into the queue in the order in which they were asked for, so that the bound holds for every record and what is
trained on does not depend on who was faster. The learning one takes batches out, trains, and prepares the next
publication; it is activated when no replica has a request in flight.
"""

import threading
import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from adapters.reference.buffer import seed_of
from adapters.reference.checkpoint_items import Place
from adapters.reference.cluster import Call, Cluster
from adapters.reference.loop import Outcome, Parts
from adapters.reference.messages import Answer, Request
from adapters.reference.publisher import Prepared
from adapters.reference.queue import RolloutQueue
from adapters.reference.remote import RemotePool, parts_of
from adapters.reference.samples import Sample, assign_advantages, fate_row, samples_of
from adapters.reference.scoring import judge
from adapters.reference.settings import Settings
from adapters.reference.staleness import StalenessPolicy
from harness.probe import Probe

POLL_SECONDS = 0.005
JUDGED_SECONDS = 0.001
"""How long to wait for the replicas while something is being scored: the trainer may have nothing but that to wait for,
and the end of a score interrupts no wait."""


@dataclass
class Ticket:
    """A batch that was asked for: its requests by replica, of which some are not sent yet, and what came back."""

    batch: int
    parts: list[Request]
    unsent: set[int]
    groups: int
    scored: dict[int, list[Sample]] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every part is scored."""
        return len(self.scored) == len(self.parts)


class Collector:
    """The collecting side: tickets, requests in flight, and what is being scored."""

    def __init__(self, settings: Settings, parts: Parts, pool: RemotePool, cluster: Cluster, probe: Probe) -> None:
        self._settings, self._parts, self._pool, self._cluster, self._probe = settings, parts, pool, cluster, probe
        self._judges = ThreadPoolExecutor(settings.pools.verifiers, thread_name_prefix="judge")
        self.tickets: deque[Ticket] = deque()
        self.next_batch = 0
        self._busy: dict[int, tuple[Ticket, Request, Call]] = {}
        self._judging: dict[Future[list[Sample]], tuple[Ticket, int]] = {}

    @property
    def idle(self) -> bool:
        """Whether no replica has a request in flight."""
        return not self._busy

    @property
    def judging(self) -> bool:
        """Whether an answer is being scored."""
        return bool(self._judging)

    def plan(self) -> Ticket:
        """Plan the next batch that was never asked for."""
        self.next_batch += 1
        return self.open(self.next_batch - 1)

    def open(self, batch: int) -> Ticket:
        """Plan a batch, after those that were planned before."""
        settings = self._settings
        trace_id, step = settings.trace_id(batch), self._parts.learner.step
        with self._probe.span("prompt_prep", trace_id=trace_id, step=step, device=settings.device) as span:
            prompts = self._parts.scheduler.batch(batch)
            span.records, span.input_tokens = len(prompts), sum(len(prompt.token_ids) for prompt in prompts)
            seed = seed_of(settings.seed, batch, 0)
            whole = Request(trace_id, prompts, settings.group_size, settings.decoding.max_tokens, seed, step)
            parts = [part for part in parts_of(whole, self._pool.replicas) if part.prompts]
        ticket = Ticket(batch, parts, set(range(len(parts))), len(prompts))
        self.tickets.append(ticket)
        return ticket

    @property
    def replicas(self) -> int:
        """How many there are."""
        return self._pool.replicas

    def sendable(self, most: int) -> list[int]:
        """The replicas that have nothing to do and may be asked, so that at most `most` are busy."""
        free = [number for number in range(self.replicas) if number not in self._busy]
        return free[: max(most - len(self._busy), 0)]

    def send(self, ticket: Ticket, number: int) -> None:
        """Ask replica `number` for its part."""
        part = replace(ticket.parts[number], step=self._parts.learner.step)
        ticket.unsent.discard(number)
        self._busy[number] = (ticket, part, self._pool.start(number, part))

    def poll(self) -> None:
        """Wait a little for something to end and take it in: answers go to a judge, verdicts to their ticket."""
        calls = {call: number for number, (_, _, call) in self._busy.items()}
        if self._judging and not calls:
            wait(self._judging, POLL_SECONDS, FIRST_COMPLETED)
        for call in self._cluster.wait(list(calls), JUDGED_SECONDS if self._judging else POLL_SECONDS):
            number = calls[call]
            ticket, part, _ = self._busy.pop(number)
            answered, answer = self._pool.finish(number, part, call)
            self._judging[self._judges.submit(self._score, ticket, answered, answer)] = (ticket, number)
        for future in [future for future in self._judging if future.done()]:
            ticket, number = self._judging.pop(future)
            ticket.scored[number] = future.result()

    def drain(self) -> None:
        """Wait for all that is in flight, and end the judges' threads."""
        while not self.idle or self.judging:
            self.poll()
        self._judges.shutdown()

    def _score(self, ticket: Ticket, part: Request, answer: Answer) -> list[Sample]:
        samples = samples_of(answer, part, ticket.batch, self._settings.decoding.stop_at_eos)
        judge(samples, self._parts.scorer, part.step, self._probe)
        return samples


class Pump:
    """Runs `settings.steps` optimizer steps with collecting and learning side by side."""

    def __init__(
        self, settings: Settings, parts: Parts, pool: RemotePool, cluster: Cluster, probe: Probe, learner_probe: Probe
    ) -> None:
        self._settings, self._parts, self._probe, self._learner_probe = settings, parts, probe, learner_probe
        self._collector = Collector(settings, parts, pool, cluster, probe)
        self._queue = RolloutQueue(settings, probe)
        self._policy = StalenessPolicy(settings)
        self._changed = threading.Condition()
        self._staged: Prepared | None = None
        self._ended = False
        self._requests, self._depth = self._collector.replicas, 0
        self._turn = 0
        """The policy version at which the next batch will be taken, were every update until then applied."""

    def run(self, place: Place) -> Outcome:
        """Run from a place to the last step; what waits then is written as in flight."""
        start = time.perf_counter_ns()
        self._go_on_from(place)
        learning = ThreadPoolExecutor(1, thread_name_prefix="learner").submit(self._learn, place.trained)
        try:
            while not self._ended:
                self._hand_over()
                self._ask()
                self._wait()
                self._take_in()
        finally:
            end = time.perf_counter_ns()
            self._end()
            learning.result()
        self._write_rest()
        return Outcome(start, end, self._parts.learner.loss)

    def _wait(self) -> None:
        """For an answer or a verdict; with neither under way, for the learning side to make room or have something to
        hand over. A replica whose answer came is asked again before anything else is waited for."""
        if not self._collector.idle or self._collector.judging:
            self._collector.poll()
            return
        with self._changed:
            if self._staged is None and not self._ended:
                self._changed.wait(POLL_SECONDS)

    def _go_on_from(self, place: Place) -> None:
        self._turn = self._parts.learner.version
        self._queue.restore(place.waiting, time.perf_counter_ns())
        self._collector.next_batch = place.next_batch
        for batch in place.pending:
            self._collector.open(batch)

    def _ask(self) -> None:
        """Send each idle replica its part of the oldest batch that it has not answered, if a limit does not forbid it.
        None is sent while a publication waits for requests in flight to end: it is not served before all serve it."""
        for number in self._collector.sendable(self._requests):
            if self._staged is not None:
                return
            ticket = next((ticket for ticket in self._collector.tickets if number in ticket.unsent), None)
            if ticket is None:
                if not self._admits(self._ahead(None), self._collector.next_batch):
                    return
                with self._changed:
                    ticket = self._collector.plan()
            elif not self._admits(self._ahead(ticket), ticket.batch):
                return
            if number in ticket.unsent:
                self._collector.send(ticket, number)

    def _ahead(self, ticket: Ticket | None) -> int:
        """Groups that were asked for before a ticket's (None: a new one's) and are not in the queue yet."""
        ahead = 0
        for other in self._collector.tickets:
            if other is ticket:
                break
            ahead += other.groups
        return ahead

    def _admits(self, ahead: int, batch: int) -> bool:
        with self._changed:
            served, now = self._parts.publisher.policy_version, time.perf_counter_ns()
            waiting = (len(self._queue) + ahead) // self._settings.prompts_per_batch
            if self._turn + waiting * self._settings.updates_per_batch >= self._settings.steps:
                return False
            if self._policy.is_control(batch) and (waiting or served != self._turn):
                return False
            return self._queue.admits(now, self._turn, ahead, served) is None

    def _take_in(self, *, whole: bool = True) -> None:
        """Put every batch that is scored, and whose turn it is, into the queue; a batch is accepted whole, but for what
        was never sent when the run ended."""
        while self._collector.tickets and (self._collector.tickets[0].complete or not whole):
            ticket = self._collector.tickets.popleft()
            samples = [sample for number in sorted(ticket.scored) for sample in ticket.scored[number]]
            where: dict[str, Any] = {"trace_id": ticket.parts[0].trace_id, "device": self._settings.device}
            with self._changed, self._probe.span("batch_assembly", step=self._parts.learner.step, **where) as span:
                span.records = len(samples)
                assign_advantages(samples, self._settings.objective)
                kept = {sample.sample_id for sample in self._parts.buffer.accept(samples)}
                now = time.perf_counter_ns()
                for _, group in groupby(samples, key=lambda sample: sample.group_id):
                    self._queue.put([sample for sample in group if sample.sample_id in kept], now)
                self._changed.notify_all()

    def _hand_over(self) -> None:
        """Activate what is staged: once no request is in flight, or at once where a completion may have several
        versions."""
        staged = self._staged
        if staged is None or (self._settings.versions == "one" and not self._collector.idle):
            return
        with self._changed:
            where: dict[str, Any] = {"policy_version": staged.shipment.policy_version if staged.shipment else None}
            with self._probe.span("weight_sync", trace_id="publication", device=self._settings.device, **where):
                self._parts.publisher.commit(staged)
            self._staged = None
            self._changed.notify_all()

    def _learn(self, taken: int) -> None:
        """The learning thread."""
        learner = self._parts.learner
        try:
            while learner.step < self._settings.steps:
                samples = self._take()
                if samples is None:
                    return
                self._parts.buffer.hold(samples)
                learner.learn(taken, samples[0].trace_id if samples else f"batch-{taken}")
                taken += 1
                with self._changed:
                    self._turn = learner.version
                self._publish()
                self._keep(taken)
        finally:
            self._end()

    def _keep(self, taken: int) -> None:
        """Save, if it is time, with the collecting side held: what waits, and what was asked for and has not come."""
        with self._changed:
            pending = [ticket.batch for ticket in self._collector.tickets]
            place = Place(taken, self._collector.next_batch, pending, self._queue.groups)
            self._parts.keeper.after(place, self._learner_probe)

    def _take(self) -> list[Sample] | None:
        """The oldest batch, once there is one, without what is too stale; None where the run ends first."""
        settings = self._settings
        with self._learner_probe.span("queue_wait", trace_id="queue", step=self._parts.learner.step) as span:
            with self._changed:
                starved = len(self._queue) < settings.prompts_per_batch
                while not self._ended:
                    self._reject()
                    samples = self._queue.get(settings.prompts_per_batch, time.perf_counter_ns())
                    if samples is not None:
                        break
                    self._changed.wait(POLL_SECONDS)
                else:
                    return None
                self._turn += settings.updates_per_batch
                self._rebalance(starved)
                self._changed.notify_all()
            span.records = len(samples)
        return samples

    def _reject(self) -> None:
        now, version = time.perf_counter_ns(), self._parts.learner.version
        dropped = self._queue.drop(lambda sample, waited: self._policy.rejects(sample, version, waited), now)
        self._probe.fates([fate_row(sample, "dropped", reason) for sample, reason in dropped])

    def _rebalance(self, starved: bool) -> None:
        growth, self._depth = self._queue.tokens - self._depth, self._queue.tokens
        self._requests = self._policy.rebalanced(self._requests, growth, starved=starved, most=self._collector.replicas)

    def _publish(self) -> None:
        """Prepare the next publication, once the one before is served: there are two buffers. The trainer goes on while
        it waits to be activated, unless its weights are needed to verify it, or nothing comes after it."""
        self._wait_until_served()
        if self._ended:
            return
        learner, publisher = self._parts.learner, self._parts.publisher
        where: dict[str, Any] = {"policy_version": learner.version, "step": learner.step}
        with self._learner_probe.span("weight_sync", trace_id="publication", **where):
            prepared = publisher.prepare()
        with self._changed:
            self._staged = prepared
            self._changed.notify_all()
        if publisher.verifies(prepared) or learner.step >= self._settings.steps:
            self._wait_until_served()

    def _wait_until_served(self) -> None:
        with self._changed:
            while self._staged is not None and not self._ended:
                self._changed.wait(POLL_SECONDS)

    def _end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _write_rest(self) -> None:
        """What was asked for and never needed: it is waited for, accepted, and in flight at the end."""
        self._collector.drain()
        self._take_in(whole=False)
        reason = "the run's last optimizer step came first"
        self._probe.fates([fate_row(sample, "in_flight", reason) for sample in self._queue.samples])
