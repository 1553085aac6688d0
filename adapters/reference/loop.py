"""The loop, colocated and synchronous: collect a batch with the newest weights, train on it, publish, again."""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch

from adapters.reference.buffer import RolloutBuffer, seed_of
from adapters.reference.engine import Engine, Generation
from adapters.reference.publisher import Publisher
from adapters.reference.samples import Sample, assign_advantages, samples_of
from adapters.reference.scheduler import PromptScheduler
from adapters.reference.scoring import Scorer
from adapters.reference.settings import Settings
from adapters.reference.trainer import MicroBatch, Trainer
from harness.probe import Probe
from harness.probe.probe import Span


@dataclass(frozen=True)
class Parts:
    """What the loop is made of; each is a file of its own, and each can be put elsewhere."""

    scheduler: PromptScheduler
    engine: Engine
    scorer: Scorer
    buffer: RolloutBuffer
    trainer: Trainer
    publisher: Publisher


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
        self._step = 0
        self._loss: float | None = None

    def run(self) -> Outcome:
        """Run to the last step."""
        start = time.perf_counter_ns()
        for batch in range(self._settings.batches):
            self._collect(batch)
            self._train(batch)
            with self._span("weight_sync", batch):
                self._parts.publisher.publish()
        return Outcome(start, time.perf_counter_ns(), self._loss)

    def _collect(self, batch: int) -> None:
        parts, settings = self._parts, self._settings
        with self._span("prompt_prep", batch) as span:
            prompts = parts.scheduler.batch(batch)
            ids = [prompt.token_ids for prompt in prompts]
            span.records, span.input_tokens = len(ids), sum(map(len, ids))
            torch.manual_seed(seed_of(settings.seed, batch, 0))
        generation = parts.engine.generate(ids, settings.group_size, settings.decoding.max_tokens)
        self._write_phases(generation, batch)
        versions = (parts.trainer.version, parts.publisher.published)
        with self._span("verifier", batch) as span:
            samples = samples_of(generation, prompts, batch, versions, settings.decoding.stop_at_eos)
            parts.scorer.score(samples)
            span.records = len(samples)
        with self._span("batch_assembly", batch) as span:
            assign_advantages(samples, settings.objective)
            parts.buffer.put(samples)
            span.records = len(samples)

    def _train(self, batch: int) -> None:
        parts, settings = self._parts, self._settings
        if parts.trainer.needs_scoring and parts.buffer.waiting:
            with self._span("logprob_recompute", batch) as span:
                span.padded_tokens = parts.trainer.score(parts.buffer.waiting)
                span.records = len(parts.buffer.waiting)
                span.policy_tokens = _policy_tokens(parts.buffer.waiting)
        for epoch in range(settings.inner_epochs):
            for number, minibatch in enumerate(parts.buffer.minibatches(batch, epoch)):
                if self._step < settings.steps:
                    self._update(minibatch, batch, epoch, number)
        parts.buffer.settle()

    def _update(self, minibatch: Sequence[Sample], batch: int, epoch: int, number: int) -> None:
        """One optimizer step; with nothing to train on it is written as not applied."""
        trainer, start, before = self._parts.trainer, time.perf_counter_ns(), self._parts.trainer.version
        with self._span("batch_assembly", batch) as span:
            micro_batches = trainer.assemble(minibatch) if minibatch else []
            span.records = len(minibatch)
        with self._span("forward_backward", batch) as span:
            results = [trainer.accumulate(micro) for micro in micro_batches]
            span.records = len(minibatch)
            span.policy_tokens = sum(micro.packed.policy_tokens for micro in micro_batches)
            span.padded_tokens = sum(micro.packed.padded_tokens for micro in micro_batches)
            span.input_tokens = sum(len(sample.prompt.token_ids) for sample in minibatch)
        loss, norm, applied = None, None, False
        with self._span("optimizer_step", batch):
            if micro_batches:
                loss = sum(result[0] for result in results)
                norm, applied = trainer.apply()
        name = f"batch-{batch}-mb-{number}" + (f"-e{epoch}" if epoch else "")
        rows = _trained_rows(micro_batches, [result[1] for result in results])
        common = {"batch_id": name, "step": self._step, "epoch": epoch, "policy_version": before}
        common |= {"published_version": self._parts.publisher.published, "t_step_start": start}
        self._probe.trained([row | common for row in rows])
        self._write_update(name, before, start, (loss, norm, applied), minibatch, span)
        self._parts.buffer.consumed(minibatch)
        self._loss = loss if applied else self._loss
        self._step += 1
        self._probe.progress(self._step, self._settings.steps, f"optimizer step {self._step}")

    def _write_update(
        self,
        name: str,
        before: int,
        start: int,
        result: tuple[float | None, float | None, bool],
        minibatch: Sequence[Sample],
        span: Span,
    ) -> None:
        loss, norm, applied = result
        trainer, objective = self._parts.trainer, self._settings.objective
        self._probe.update(
            step=self._step,
            batch_id=name,
            policy_version_before=before,
            policy_version_after=trainer.version,
            t_start=start,
            t_end=time.perf_counter_ns(),
            applied=applied,
            loss=loss,
            grad_norm=norm,
            learning_rate=trainer.optimizer.param_groups[0]["lr"],
            records=len(minibatch),
            groups=len({sample.group_id for sample in minibatch}),
            policy_tokens=span.policy_tokens,
            padded_tokens=span.padded_tokens,
            clip_low=objective.clip_low,
            clip_high=objective.clip_high,
        )

    def _write_phases(self, generation: Generation, batch: int) -> None:
        for phase in generation.phases:
            self._probe.add_span(
                phase.stage,
                phase.t_start,
                phase.t_end,
                trace_id=f"gen-{batch}",
                policy_version=self._parts.trainer.version,
                step=self._step,
                device=self._settings.device,
                records=phase.records,
                input_tokens=phase.input_tokens,
                output_tokens=phase.output_tokens,
                detail=f'{{"forwards": {phase.forwards}}}',
            )

    def _span(self, stage: str, batch: int) -> AbstractContextManager[Span]:
        return self._probe.span(
            stage,
            trace_id=f"gen-{batch}",
            policy_version=self._parts.trainer.version,
            step=self._step,
            device=self._settings.device,
        )


def _policy_tokens(samples: Sequence[Sample]) -> int:
    return sum(len(sample.completion.tokens) for sample in samples)


def _trained_rows(micro_batches: Sequence[MicroBatch], logprobs: Sequence[list[list[float]]]) -> list[dict[str, Any]]:
    return [
        {
            "sample_id": sample.sample_id,
            "trainer_logprobs": row,
            "old_logprobs": None if sample.old is None else sample.old.tolist(),
            "advantage": sample.advantage,
            "policy_tokens": len(row),
        }
        for micro, rows in zip(micro_batches, logprobs, strict=True)
        for sample, row in zip(micro.samples, rows, strict=True)
    ]
