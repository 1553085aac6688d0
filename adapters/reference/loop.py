"""The barrier loop: collect a batch with the newest weights, train on it, publish, again. Colocated, the parts are in
this process; disaggregated, they are actors behind the same protocols. Nothing overlaps and no record is stale."""

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from adapters.reference.buffer import RolloutBuffer, seed_of
from adapters.reference.checkpoint_items import Place
from adapters.reference.keeper import Keeper
from adapters.reference.learner import Learner
from adapters.reference.messages import Answer, Request
from adapters.reference.publisher import Publisher
from adapters.reference.samples import Sample, assign_advantages, samples_of
from adapters.reference.scheduler import PromptScheduler
from adapters.reference.scoring import Scorer, judge
from adapters.reference.settings import Settings
from harness.probe import Probe
from harness.probe.probe import Span


class Collectors(Protocol):
    """What answers requests: a rollout worker in this process, or a pool of replicas."""

    def generate(self, request: Request) -> list[tuple[Request, Answer]]:
        """Answer a request, whole, in one part or several, each with the request that it answers. Raises SystemFailure
        if a part of it was lost for good."""
        ...


@dataclass(frozen=True)
class Parts:
    """What the loop is made of; each is a file of its own, and each can be put elsewhere."""

    scheduler: PromptScheduler
    collectors: Collectors
    scorer: Scorer
    buffer: RolloutBuffer
    learner: Learner
    publisher: Publisher
    keeper: Keeper


@dataclass(frozen=True)
class Outcome:
    """The measured window (perf_counter_ns) and the last applied step's loss, None where none was applied."""

    t_start: int
    t_end: int
    final_loss: float | None


class Loop:
    """Runs `settings.steps` optimizer steps. `T_seq = rollout + reward + logp + train + sync` [12.1.5]."""

    def __init__(self, settings: Settings, parts: Parts, probe: Probe) -> None:
        self._settings, self._parts, self._probe = settings, parts, probe

    def run(self, place: Place) -> Outcome:
        """Run from a place to the last step."""
        start = time.perf_counter_ns()
        for batch in range(place.next_batch, self._settings.batches):
            trace_id = self._settings.trace_id(batch)
            self._collect(batch, trace_id)
            self._parts.learner.learn(batch, trace_id)
            with self._span("weight_sync", trace_id, self._probe):
                self._publish()
            self._parts.keeper.after(Place(batch + 1, batch + 1), self._probe)
        return Outcome(start, time.perf_counter_ns(), self._parts.learner.loss)

    def _publish(self) -> None:
        """At a barrier nobody can do anything else meanwhile: a publication that was refused is tried once more, so
        that only a refusal that lasts costs lag. The asynchronous loop tries none again: the next one is coming."""
        if self._parts.publisher.publish().refused:
            self._parts.publisher.publish()

    def request(self, batch: int) -> Request:
        """What generated batch `batch` asks."""
        return self.prepare(batch, self._probe)

    def prepare(self, batch: int, probe: Probe) -> Request:
        """Draw the batch's prompts, with a span of that probe's."""
        parts, settings, trace_id = self._parts, self._settings, self._settings.trace_id(batch)
        with self._span("prompt_prep", trace_id, probe) as span:
            prompts = parts.scheduler.batch(batch)
            span.records, span.input_tokens = len(prompts), sum(len(prompt.token_ids) for prompt in prompts)
            seed, step = seed_of(settings.seed, batch, 0), parts.learner.step
            return Request(trace_id, prompts, settings.group_size, settings.decoding.max_tokens, seed, step)

    def answer(self, request: Request, batch: int) -> list[Sample]:
        """The samples of a request, generated and judged."""
        answers, stop = self._parts.collectors.generate(request), self._settings.decoding.stop_at_eos
        samples = [sample for part, answer in answers for sample in samples_of(answer, part, batch, stop)]
        judge(samples, self._parts.scorer, request.step, self._probe)
        return samples

    def _collect(self, batch: int, trace_id: str) -> None:
        samples = self.answer(self.request(batch), batch)
        with self._span("batch_assembly", trace_id, self._probe) as span:
            assign_advantages(samples, self._settings.objective)
            self._parts.buffer.hold(self._parts.buffer.accept(samples))
            span.records = len(samples)

    def _span(self, stage: str, trace_id: str, probe: Probe) -> AbstractContextManager[Span]:
        parts = self._parts
        where: dict[str, Any] = {"policy_version": parts.publisher.policy_version, "step": parts.learner.step}
        return probe.span(stage, trace_id=trace_id, device=self._settings.device, **where)
