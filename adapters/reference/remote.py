"""The actors behind the loop's protocols: the loop calls them as it calls the parts of its own process.

A rollout replica or a verifier that dies is replaced and its work asked for again, because nothing but work in flight
is lost with it. A trainer rank that dies takes the optimizer's state along: the attempt ends, and a checkpoint is where
the next one starts.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from adapters.reference.buffer import split_evenly
from adapters.reference.checkpoint import TrainerPart, merged_parts
from adapters.reference.cluster import Actor, ActorLost, Call, Cluster
from adapters.reference.messages import Answer, Receipt, Request, Scores, Scoring, Shipment, Update, merged
from adapters.reference.samples import Sample
from adapters.reference.settings import Settings
from harness.contract import ROLLOUTS_LOST
from harness.errors import SystemFailure
from harness.probe import Probe
from harness.task.verifier import Verdict

MOST_RETRIES = 3
Starter = Callable[[int, int], Actor]
"""Starts the actor of a number; the second argument counts its lives, the first being 0."""


class ActorPool:
    """Actors of one kind by number, each replaced where it dies. May be asked from any thread."""

    def __init__(self, cluster: Cluster, starter: Starter, count: int, probe: Probe) -> None:
        self.cluster, self._starter, self._probe = cluster, starter, probe
        self._lock = threading.RLock()
        self.actors = [starter(number, 0) for number in range(count)]
        self.lives = [0] * count

    def ready(self) -> None:
        """Wait until every actor is built."""
        self.cluster.results([actor.call("ready") for actor in self.actors])

    def ask_all(self, method: str, *arguments: Any) -> list[Any]:
        """One answer an actor."""
        return self.cluster.results([actor.call(method, *arguments) for actor in self.actors])

    def replace(self, number: int, lost: ActorLost, prepare: Callable[[Actor], None]) -> Actor:
        """The actor in the place of one that died: another is started, built and prepared, unless it was already.

        Raises:
            SystemFailure: it died too often.
        """
        with self._lock:
            if self.actors[number] is not lost.actor:
                return self.actors[number]
            self._probe.process_died(lost.actor.name, str(lost))
            if self.lives[number] == MOST_RETRIES:
                raise SystemFailure(f"{lost.actor.name} died: one in its place died {MOST_RETRIES} times before")
            self.lives[number] += 1
            self.actors[number] = self._starter(number, self.lives[number])
            self.cluster.result(self.actors[number].call("ready"))
            prepare(self.actors[number])
            return self.actors[number]

    def close(self) -> None:
        """Let every actor end its ledger; one that is dead, and was not missed yet, is declared so: it has lost what it
        had not flushed."""
        for call in [actor.call("close") for actor in self.actors]:
            try:
                self.cluster.result(call)
            except ActorLost as lost:
                self._probe.process_died(lost.actor.name, str(lost))


class RemotePool:
    """The rollout replicas. A request is cut between them in the order of its prompts, each part with its own seed."""

    def __init__(self, pool: ActorPool, probe: Probe) -> None:
        self._pool, self._probe = pool, probe
        self._served: Shipment | None = None

    @property
    def replicas(self) -> int:
        """How many there are."""
        return len(self._pool.actors)

    def generate(self, request: Request) -> list[tuple[Request, Answer]]:
        """See `loop.Collectors.generate`."""
        parts = [(number, part) for number, part in enumerate(parts_of(request, self.replicas)) if part.prompts]
        calls = [self.start(number, part) for number, part in parts]
        return [self.finish(number, part, call) for (number, part), call in zip(parts, calls, strict=True)]

    def start(self, number: int, part: Request) -> Call:
        """Ask one replica; the answer is `finish`'s."""
        return self._pool.actors[number].call("generate", part)

    def finish(self, number: int, part: Request, call: Call) -> tuple[Request, Answer]:
        """The answer of a call of `start`, and the request that it answers: where the replica died, another is started
        and asked again, under a trace of its own."""
        for again in range(1, MOST_RETRIES + 2):
            try:
                answer: Answer = self._pool.cluster.result(call)
                return part, answer
            except ActorLost as lost:
                self._lose(part, lost)
                self._pool.replace(number, lost, self._bring_up)
                part = replace(part, trace_id=f"{part.trace_id.split('.r')[0]}.r{number}.{again}")
                call = self.start(number, part)
        raise SystemFailure(f"{part.trace_id} was lost {MOST_RETRIES + 1} times")

    def stage(self, shipment: Shipment) -> list[Receipt]:
        """See `publisher.Receivers.stage`."""
        return self._ask("stage", shipment)

    def activate(self, shipment: Shipment) -> list[Receipt]:
        """See `publisher.Receivers.activate`."""
        receipts = self._ask("activate", shipment, first=("stage",))
        if all(receipt.ok for receipt in receipts):
            self._served = shipment
        return receipts

    def revert(self, shipment: Shipment) -> list[Receipt]:
        """See `publisher.Receivers.revert`."""
        return self._ask("revert", shipment)

    def control(self, prompts: Sequence[list[int]], tokens: int) -> list[Answer]:
        """See `publisher.Receivers.control`."""
        return self._ask("control", prompts, tokens)

    def _ask(self, method: str, *arguments: Any, first: Sequence[str] = ()) -> list[Any]:
        """One answer a replica; one that dies is replaced and asked again, what has to be asked `first` before."""
        actors = list(self._pool.actors)
        calls = [actor.call(method, *arguments) for actor in actors]
        return [self._answer(number, call, (*first, method), arguments) for number, call in enumerate(calls)]

    def _answer(self, number: int, call: Call, methods: Sequence[str], arguments: Sequence[Any]) -> Any:
        try:
            return self._pool.cluster.result(call)
        except ActorLost as lost:
            actor = self._pool.replace(number, lost, self._bring_up)
            answers = [self._pool.cluster.result(actor.call(method, *arguments)) for method in methods]
            return answers[-1]

    def _lose(self, part: Request, lost: ActorLost) -> None:
        records = len(part.prompts) * part.group_size
        detail = f"{lost.actor.name} died with {records} rollouts under way; they are asked for again"
        self._probe.fault(ROLLOUTS_LOST, "system", part.trace_id, detail)

    def _bring_up(self, actor: Actor) -> None:
        """A replacement serves what the others serve: the trainer may be further by now."""
        if self._served is None:
            return
        for phase in ("stage", "activate"):
            receipt: Receipt = self._pool.cluster.result(actor.call(phase, self._served))
            if not receipt.ok:
                raise SystemFailure(f"{actor.name} could not take publication over: {receipt.detail}")


def parts_of(request: Request, parts: int) -> list[Request]:
    """A request cut into one for each of `parts` workers; the seeds differ, so that no two draw alike."""
    cut = split_evenly(request.prompts, parts)
    return [replace(request, prompts=prompts, seed=request.seed * 64 + part) for part, prompts in enumerate(cut)]


class RemoteScorer:
    """The verifiers; the items of a batch are cut between them. A verifier that dies has said nothing yet: the whole
    part is scored again by its replacement."""

    def __init__(self, pool: ActorPool) -> None:
        self._pool = pool

    def score(self, asked: Scoring) -> list[tuple[str, Verdict]]:
        """See `Scorer.score`."""
        cut = [items for items in split_evenly(asked.items, len(self._pool.actors)) if items]
        parts = [replace(asked, items=items) for items in cut]
        calls = [actor.call("score", part) for actor, part in zip(self._pool.actors, parts, strict=False)]
        found = [self._finish(number, *each) for number, each in enumerate(zip(parts, calls, strict=True))]
        return [verdict for verdicts in found for verdict in verdicts]

    def _finish(self, number: int, part: Scoring, call: Call) -> list[tuple[str, Verdict]]:
        for _ in range(MOST_RETRIES + 1):
            try:
                verdicts: list[tuple[str, Verdict]] = self._pool.cluster.result(call)
                return verdicts
            except ActorLost as lost:
                call = self._pool.replace(number, lost, lambda _: None).call("score", part)
        raise SystemFailure(f"the verifiers of {part.trace_id} died {MOST_RETRIES + 1} times")


class RemoteTrainer:
    """The trainer's ranks; the first one answers for all."""

    def __init__(self, pool: ActorPool, settings: Settings) -> None:
        self._pool = pool
        self.version = 0
        self.needs_scoring = settings.needs_scoring

    def score(self, samples: Sequence[Sample], trace_id: str, step: int) -> Scores:
        """See `Trainer.score`."""
        scores: Scores = self._ask("score", samples, trace_id, step)
        return scores

    def update(self, minibatch: Sequence[Sample], trace_id: str, step: int, lr_scale: float) -> Update:
        """See `Trainer.update`."""
        update: Update = self._ask("update", minibatch, trace_id, step, lr_scale)
        self.version = update.version_after
        return update

    def ship(self, number: int) -> Shipment:
        """See `publisher.Sender.ship`."""
        return merged(self._pool.ask_all("ship", number))

    def sampled_logprobs(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """See `publisher.Sender.sampled_logprobs`."""
        rows: list[list[float]] = self._ask("sampled_logprobs", pairs)
        return rows

    def save(self, folder: str, background: bool) -> None:
        """See `checkpoint_writer.KeptTrainer`."""
        self._pool.ask_all("save", folder, background)

    def saved(self) -> TrainerPart | None:
        """See `checkpoint_writer.KeptTrainer`."""
        parts: list[TrainerPart | None] = self._pool.ask_all("saved")
        whole = [part for part in parts if part is not None]
        return merged_parts(whole) if len(whole) == len(parts) else None

    def committed(self) -> None:
        """See `checkpoint_writer.KeptTrainer`."""
        self._pool.ask_all("committed")

    def load(self, folder: str, which: str) -> TrainerPart:
        """See `checkpoint_writer.KeptTrainer`."""
        part = merged_parts(self._pool.ask_all("load", folder, which))
        self.version = part.version
        return part

    def facts(self) -> dict[str, Any]:
        """See `facts.trainer_facts`."""
        facts: dict[str, Any] = self._ask("facts")
        return facts

    def digest(self) -> str:
        """SHA-256 of the trained parameters."""
        return str(self._ask("digest"))

    def _ask(self, method: str, *arguments: Any) -> Any:
        return self._pool.ask_all(method, *arguments)[0]
