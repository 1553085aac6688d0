"""The trainer: old and reference log-probs, gradient accumulation, and AdamW."""

import copy
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from adapters.reference.batches import Packed, pack
from adapters.reference.messages import Scores, Update
from adapters.reference.objective import kl_terms, policy_terms, token_weights
from adapters.reference.policy import policy_logprobs
from adapters.reference.samples import Sample
from adapters.reference.settings import Settings
from harness.probe import Probe
from harness.probe.probe import Span


@dataclass(frozen=True)
class MicroBatch:
    """Samples of one forward and backward pass; all tensors but `packed` are [N], one value a policy token.

    Attributes:
        weights: what each token counts in the loss of the whole minibatch.
        old, reference: log-probs, or None where the objective needs none.
    """

    samples: list[Sample]
    packed: Packed
    advantages: Tensor
    weights: Tensor
    old: Tensor | None
    reference: Tensor | None


class Trainer:
    """Trains one module. `version` is the number of optimizer steps applied to it [12.1.4]."""

    def __init__(self, model: Any, settings: Settings, pad: int, probe: Probe) -> None:
        self.model, self.version = model, 0
        self._probe = probe
        self.needs_scoring = settings.needs_scoring
        self._settings, self._pad = settings, pad
        self._reference = copy.deepcopy(model).requires_grad_(False) if settings.objective.kl_beta else None
        self._parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.optimizer = _adamw(self._parameters, settings)
        if settings.optimizer.gradient_checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """The trained tensors by name, a tied one once."""
        return ((name, parameter.detach()) for name, parameter in self.model.named_parameters())

    def score(self, samples: Sequence[Sample], trace_id: str, step: int) -> Scores:
        """Old and reference log-probs of a batch, in forward passes as large as training's."""
        old: dict[str, list[float]] = {}
        reference: dict[str, list[float]] = {}
        with self._span("logprob_recompute", trace_id, step) as span, torch.no_grad():
            for part in self._split(samples, self._settings.micro_batches * self._settings.minibatches):
                packed = self._pack(part)
                span.padded_tokens += packed.padded_tokens
                span.policy_tokens += packed.policy_tokens
                names = [sample.sample_id for sample in part]
                if self._settings.updates_per_batch > 1:
                    old |= zip(names, self._rows(self.model, packed), strict=True)
                if self._reference is not None:
                    reference |= zip(names, self._rows(self._reference, packed), strict=True)
            span.records = len(samples)
        return Scores(_in_order(old, samples), _in_order(reference, samples))

    def update(self, minibatch: Sequence[Sample], trace_id: str, step: int, lr_scale: float) -> Update:
        """One optimizer step over a minibatch, at `lr_scale` times the learning rate; with nothing to train on, or a
        gradient that is not finite, it is not applied and leaves the weights as they are."""
        start, before = time.perf_counter_ns(), self.version
        with self._span("batch_assembly", trace_id, step) as span:
            micro_batches = self.assemble(minibatch) if minibatch else []
            span.records = len(minibatch)
        with self._span("forward_backward", trace_id, step) as span:
            results = [self.accumulate(micro) for micro in micro_batches]
            span.records = len(minibatch)
            span.policy_tokens = sum(micro.packed.policy_tokens for micro in micro_batches)
            span.padded_tokens = sum(micro.packed.padded_tokens for micro in micro_batches)
            span.input_tokens = sum(len(sample.prompt.token_ids) for sample in minibatch)
        loss, norm, applied = None, None, False
        with self._span("optimizer_step", trace_id, step):
            if micro_batches:
                loss = math.fsum(result[0] for result in results)
                self._set_rate(lr_scale)
                norm, applied = self.apply()
        names = [sample.sample_id for micro in micro_batches for sample in micro.samples]
        rows = dict(zip(names, (row for result in results for row in result[1]), strict=True))
        return Update(
            loss=loss,
            grad_norm=norm,
            applied=applied,
            version_before=before,
            version_after=self.version,
            learning_rate=self.optimizer.param_groups[0]["lr"],
            padded_tokens=span.padded_tokens,
            t_start=start,
            t_end=time.perf_counter_ns(),
            logprobs=[list(rows[sample.sample_id]) for sample in minibatch],
        )

    def assemble(self, minibatch: Sequence[Sample]) -> list[MicroBatch]:
        """The minibatch's forward passes; samples of like length share one, so that little is padded."""
        parts = self._split(minibatch, self._settings.micro_batches)
        lengths = torch.tensor([len(sample.completion.tokens) for part in parts for sample in part])
        weights = token_weights(lengths, self._settings.objective.loss).float().to(self._settings.device)
        each = weights.split([sum(len(sample.completion.tokens) for sample in part) for part in parts])
        return [self._micro_batch(part, weight) for part, weight in zip(parts, each, strict=True)]

    def accumulate(self, micro: MicroBatch) -> tuple[float, list[list[float]]]:
        """Forward and backward; returns this part of the minibatch's loss and its log-probs, sample by sample."""
        objective = self._settings.objective
        logp = self._logprobs(self.model, micro.packed)
        terms = policy_terms(logp, micro.old, micro.advantages, objective.clip_low, objective.clip_high)
        if micro.reference is not None:
            terms = terms + objective.kl_beta * kl_terms(logp, micro.reference)
        loss = (terms * micro.weights).sum()
        loss.backward()
        rows = logp.detach().split(micro.packed.lengths.tolist())
        return loss.item(), [row.tolist() for row in rows]

    def apply(self) -> tuple[float, bool]:
        """Clip and step; returns the gradient's norm before clipping, and whether the step was applied: a gradient
        that is not finite leaves the weights as they are."""
        limit = self._settings.optimizer.max_grad_norm or math.inf
        norm = torch.nn.utils.clip_grad_norm_(self._parameters, limit).item()
        applied = math.isfinite(norm)
        if applied:
            self.optimizer.step()
            self.version += 1
        self.optimizer.zero_grad(set_to_none=True)
        if self._settings.device != "cpu":
            torch.accelerator.synchronize()
        return norm, applied

    def _set_rate(self, scale: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self._settings.optimizer.learning_rate * scale

    def _logprobs(self, model: Any, packed: Packed) -> Tensor:
        # Checkpointing works in training mode only; dropout is off in both modes where the model has none.
        model.train(self._settings.optimizer.gradient_checkpointing and torch.is_grad_enabled())
        return policy_logprobs(model, packed, self._settings.decoding.temperature)

    def _rows(self, model: Any, packed: Packed) -> list[list[float]]:
        return [row.tolist() for row in self._logprobs(model, packed).split(packed.lengths.tolist())]

    def _span(self, stage: str, trace_id: str, step: int) -> AbstractContextManager[Span]:
        where: dict[str, Any] = {"policy_version": self.version, "step": step, "device": self._settings.device}
        return self._probe.span(stage, trace_id=trace_id, **where)

    def _pack(self, samples: Sequence[Sample]) -> Packed:
        pairs = [(sample.prompt.token_ids, sample.completion.tokens) for sample in samples]
        return pack(pairs, self._pad, self._settings.device)

    def _split(self, samples: Sequence[Sample], parts: int) -> list[list[Sample]]:
        ordered = sorted(samples, key=lambda sample: len(sample.prompt.token_ids) + len(sample.completion.tokens))
        pieces = torch.arange(len(ordered)).tensor_split(parts)
        return [[ordered[index] for index in piece.tolist()] for piece in pieces if len(piece)]

    def _micro_batch(self, samples: list[Sample], weights: Tensor) -> MicroBatch:
        packed = self._pack(samples)
        values = torch.tensor([sample.advantage for sample in samples], dtype=torch.float32)
        advantages = values.to(self._settings.device).repeat_interleave(packed.lengths)
        return MicroBatch(
            samples,
            packed,
            advantages,
            weights,
            _joined([sample.old for sample in samples], self._settings.device),
            _joined([sample.reference for sample in samples], self._settings.device),
        )


def _joined(rows: list[list[float] | None], device: str) -> Tensor | None:
    present = [value for row in rows if row is not None for value in row]
    return torch.tensor(present, dtype=torch.float32, device=device) if present else None


def _in_order(rows: dict[str, list[float]], samples: Sequence[Sample]) -> list[list[float]] | None:
    return [rows[sample.sample_id] for sample in samples] if rows else None


def _adamw(parameters: list[Any], settings: Settings) -> torch.optim.AdamW:
    asked = settings.optimizer
    return torch.optim.AdamW(
        parameters,
        lr=asked.learning_rate,
        betas=(asked.adam_beta1, asked.adam_beta2),
        eps=asked.adam_eps,
        weight_decay=asked.weight_decay,
        fused=True,
    )
