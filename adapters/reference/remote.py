"""The actors behind the loop's protocols: the loop calls them as it calls the parts of its own process."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from adapters.reference.buffer import split_evenly
from adapters.reference.cluster import Actor, Cluster
from adapters.reference.engine import Completion
from adapters.reference.messages import Answer, Receipt, Request, Scores, Scoring, Shipment, Update
from adapters.reference.samples import Sample
from adapters.reference.settings import Settings
from harness.task.verifier import Verdict


class RemotePool:
    """The rollout replicas. A request is cut between them in the order of its prompts, each part with its own seed."""

    def __init__(self, cluster: Cluster, replicas: Sequence[Actor]) -> None:
        self._cluster, self._actors = cluster, list(replicas)

    @property
    def replicas(self) -> int:
        """How many there are."""
        return len(self._actors)

    def generate(self, request: Request) -> Answer:
        """See `loop.Collectors.generate`."""
        parts = [part for part in parts_of(request, self.replicas) if part.prompts]
        calls = [(actor, actor.call("generate", part)) for actor, part in zip(self._actors, parts, strict=False)]
        answers: list[Answer] = self._cluster.results(calls)
        groups = [group for answer in answers for group in answer.groups]
        return Answer(groups, answers[0].policy_version, answers[0].published_version)

    def stage(self, shipment: Shipment) -> list[Receipt]:
        """See `publisher.Receivers.stage`."""
        return self._ask("stage", shipment)

    def activate(self, shipment: Shipment) -> list[Receipt]:
        """See `publisher.Receivers.activate`."""
        return self._ask("activate", shipment)

    def control(self, prompts: Sequence[list[int]], tokens: int) -> list[list[Completion]]:
        """See `publisher.Receivers.control`."""
        return self._ask("control", prompts, tokens)

    def _ask(self, method: str, *arguments: Any) -> list[Any]:
        return self._cluster.results([(actor, actor.call(method, *arguments)) for actor in self._actors])


def parts_of(request: Request, parts: int) -> list[Request]:
    """A request cut into one for each of `parts` workers; the seeds differ, so that no two draw alike."""
    cut = split_evenly(request.prompts, parts)
    return [replace(request, prompts=prompts, seed=request.seed * 64 + part) for part, prompts in enumerate(cut)]


class RemoteScorer:
    """The verifiers; the items of a batch are cut between them."""

    def __init__(self, cluster: Cluster, verifiers: Sequence[Actor]) -> None:
        self._cluster, self._actors = cluster, list(verifiers)

    def score(self, asked: Scoring) -> list[tuple[str, Verdict]]:
        """See `Scorer.score`."""
        cut = [items for items in split_evenly(asked.items, len(self._actors)) if items]
        parts = [Scoring(items, asked.trace_id, asked.policy_version, asked.step) for items in cut]
        calls = [(actor, actor.call("score", part)) for actor, part in zip(self._actors, parts, strict=False)]
        return [verdict for verdicts in self._cluster.results(calls) for verdict in verdicts]


class RemoteTrainer:
    """The trainer's ranks; the first one answers for all."""

    def __init__(self, cluster: Cluster, ranks: Sequence[Actor], settings: Settings) -> None:
        self._cluster, self._ranks = cluster, list(ranks)
        self.version = 0
        self.needs_scoring = settings.needs_scoring

    def score(self, samples: Sequence[Sample], trace_id: str, step: int) -> Scores:
        """See `Trainer.score`."""
        scores: Scores = self._ask("score", samples, trace_id, step)
        return scores

    def update(self, minibatch: Sequence[Sample], trace_id: str, step: int) -> Update:
        """See `Trainer.update`."""
        update: Update = self._ask("update", minibatch, trace_id, step)
        self.version = update.version_after
        return update

    def ship(self, number: int) -> Shipment:
        """See `publisher.Sender.ship`."""
        shipment: Shipment = self._ask("ship", number)
        return shipment

    def sampled_logprobs(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """See `publisher.Sender.sampled_logprobs`."""
        rows: list[list[float]] = self._ask("sampled_logprobs", pairs)
        return rows

    def facts(self) -> dict[str, Any]:
        """See `facts.trainer_facts`."""
        facts: dict[str, Any] = self._ask("facts")
        return facts

    def digest(self) -> str:
        """SHA-256 of the trained parameters."""
        return str(self._ask("digest"))

    def _ask(self, method: str, *arguments: Any) -> Any:
        return self._cluster.results([(rank, rank.call(method, *arguments)) for rank in self._ranks])[0]
