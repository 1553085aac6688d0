"""The collecting side: opens groups while admission allows, gives them to replicas, and puts them into the queue."""

from collections import OrderedDict, deque
from collections.abc import Callable

import numpy as np
import simpy

from harness.simulate.draws import Draws
from harness.simulate.queue import RolloutQueue
from harness.simulate.recorder import Recorder
from harness.simulate.records import Group, Request, Sample, Ticket
from harness.simulate.replica import Replica
from harness.simulate.settings import Settings
from harness.simulate.staleness import StalenessPolicy
from harness.simulate.verifiers import VerifierPool

FAILED = "verifier_error"


class Collector:
    """Where the world stands for it: `turn` is the policy version at which the next batch will be taken were every
    update until then applied, `served` the version that replicas serve, `taken` the batches taken so far; while
    `staged`, a publication waits for what is in flight to end; once `ended`, nothing new is asked for."""

    def __init__(
        self,
        env: simpy.Environment,
        settings: Settings,
        queue: RolloutQueue,
        policy: StalenessPolicy,
        recorder: Recorder,
        rngs: list[np.random.Generator],
    ) -> None:
        self._env, self._settings, self._queue, self._policy, self._recorder = env, settings, queue, policy, recorder
        lengths, prompts, verdicts = rngs
        self._lengths = Draws(settings.response_tokens, lengths, whole=True)
        self._prompts = Draws(settings.prompt_tokens, prompts, whole=True)
        asked = settings.rollout
        self.replicas = [Replica(env, number, asked, self._generated) for number in range(asked.replicas)]
        self.verifiers = VerifierPool(env, settings.verifier, settings.synthetic.right, verdicts, self._verified)
        self._pending: deque[Request] = deque()
        self._roomy: dict[Replica, None] = dict.fromkeys(self.replicas)
        self._tickets: dict[Group, Ticket] = {}
        self._open: OrderedDict[Ticket, None] = OrderedDict()
        self._asked_groups = 0
        self.running = 0
        self.most = asked.replicas * (1 if asked.request == "part" else asked.slots)
        self.limit = self.most
        self.unput = 0
        self.turn = self.served = self.taken = 0
        self.staged = self.ended = False
        self.idle: Callable[[], None] = lambda: None
        self.arrived: Callable[[], None] = lambda: None

    @property
    def quiet(self) -> bool:
        """Whether nothing is being generated or verified."""
        return not self.unput

    def fill(self) -> None:
        """Give every replica that has room something to do, one request each in turn."""
        touched: dict[Replica, None] = {}
        unfit: list[Replica] = []
        while self._roomy and not self._held and (self._pending or self._ask()):
            replica = next(iter(self._roomy))
            del self._roomy[replica]
            if not replica.has_room(self._pending[0]):
                unfit.append(replica)
                continue
            self._give(replica)
            touched[replica] = None
        self._roomy |= dict.fromkeys(unfit)
        for replica in touched:
            replica.touch()

    def feed(self, replica: Replica) -> None:
        """Give one replica what it has room for; `touch` has to follow."""
        self._roomy.pop(replica, None)
        while not self._held and (self._pending or self._ask()) and replica.has_room(self._pending[0]):
            self._give(replica)
        if not replica.full:
            self._roomy[replica] = None

    def ask_again(self, requests: list[Request]) -> None:
        """Requests that a replica died with, before all others."""
        self.running -= len(requests)
        for request in reversed(requests):
            request.left = len(request.samples)
            for sample in request.samples:
                sample.segments, sample.made, sample.t_start, sample.t_end = None, 0, 0.0, 0.0
            self._pending.appendleft(request)

    def reset(self, turn: int, taken: int) -> None:
        """Forget all that was asked for, as a process that begins anew at a version and a batch."""
        self.verifiers.reset()
        self._pending.clear()
        self._tickets.clear()
        self._open.clear()
        self.running = self.unput = 0
        self.turn = self.served = turn
        self.taken, self.staged = taken, False
        self._roomy = dict.fromkeys(self.replicas)

    def gone(self, replica: Replica) -> None:
        """A replica that nothing may be asked of."""
        self._roomy.pop(replica, None)

    def back(self, replica: Replica) -> None:
        """A replica that may be asked again."""
        self._roomy[replica] = None
        self.fill()

    @property
    def _held(self) -> bool:
        """Whether no request may be given to any replica now."""
        return self.staged or self.running >= self.limit

    def _give(self, replica: Replica) -> None:
        self.running += 1
        replica.take(self._pending.popleft())
        if not replica.full:
            self._roomy[replica] = None

    def _ask(self) -> bool:
        """Open a ticket, if a limit does not forbid it."""
        queue = self._queue
        waiting = queue.batches(self.unput)
        if self.ended or self._enough_for_the_run(waiting):
            return False
        if self._policy.is_control(self.taken + waiting) and (waiting or self.served != self.turn):
            return False
        if not queue.admits(self._env.now, self.turn, self.unput, self.served):
            return False
        groups = [self._group() for _ in range(self._ticket_size())]
        ticket = Ticket(groups, len(groups))
        self._open[ticket] = None
        self.unput += len(groups)
        for group in groups:
            self._tickets[group] = ticket
        for samples, members in self._split(groups):
            request = Request(samples, members)
            for group in members:
                group.requests.append(request)
            self._pending.append(request)
        return True

    def _enough_for_the_run(self, waiting: int) -> bool:
        settings = self._settings
        return settings.steps is not None and self.turn + waiting * settings.batch.updates >= settings.steps

    def _ticket_size(self) -> int:
        return (self._settings.batch.groups or 1) if self._settings.rollout.request == "part" else 1

    def _group(self) -> Group:
        lengths = [self._lengths.next() for _ in range(self._settings.group_size)]
        self._asked_groups += 1
        return Group(self._asked_groups - 1, self._prompts.next(), lengths)

    def _split(self, groups: list[Group]) -> list[tuple[list[Sample], list[Group]]]:
        kind, replicas = self._settings.rollout.request, len(self.replicas)
        if kind == "sample":
            return [([sample], [group]) for group in groups for sample in group.samples]
        if kind == "group":
            return [(group.samples, [group]) for group in groups]
        size = -(-len(groups) // replicas)
        parts = [groups[start : start + size] for start in range(0, len(groups), size)]
        return [([sample for group in part for sample in group.samples], part) for part in parts]

    def _generated(self, replica: Replica, request: Request) -> None:
        self.running -= 1
        self.verifiers.submit(request)
        self.feed(replica)
        if self.staged and not self.running:
            self.idle()

    def _verified(self, request: Request) -> None:
        for group in request.groups:
            group.left -= len(request.samples) if len(request.groups) == 1 else group.size
            if group.left:
                continue
            ticket = self._tickets.pop(group)
            ticket.waiting -= 1
            if not ticket.waiting:
                self._put_ready(ticket)

    def _put_ready(self, ticket: Ticket) -> None:
        """Put what has its turn."""
        if self._settings.order == "finished":
            del self._open[ticket]
            self._put(ticket)
        else:
            while self._open and not next(iter(self._open)).waiting:
                self._put(self._open.popitem(last=False)[0])
        self.arrived()
        self.fill()

    def _put(self, ticket: Ticket) -> None:
        now = self._env.now
        for group in ticket.groups:
            self.unput -= 1
            failed = [(sample, FAILED) for sample in group.samples if sample.failed]
            self._queue.put(group, now)
            if failed:
                self._recorder.dropped(failed, now)
