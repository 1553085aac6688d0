"""The trainer: old and reference log-probs, gradient accumulation, and AdamW."""

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from adapters.reference.batches import Packed, pack
from adapters.reference.objective import kl_terms, policy_terms, token_weights
from adapters.reference.policy import policy_logprobs
from adapters.reference.samples import Sample
from adapters.reference.settings import Settings


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

    def __init__(self, model: Any, settings: Settings, pad: int) -> None:
        self.model, self.version = model, 0
        self._settings, self._pad = settings, pad
        self._reference = copy.deepcopy(model).requires_grad_(False) if settings.objective.kl_beta else None
        self._parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.optimizer = _adamw(self._parameters, settings)
        if settings.optimizer.gradient_checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    @property
    def needs_scoring(self) -> bool:
        """Whether a batch's samples are scored before training: several updates need a frozen old policy, a KL term
        needs the reference's log-probs. With one update the ratio is 1 by construction."""
        return self._settings.updates_per_batch > 1 or self._reference is not None

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """The trained tensors by name, a tied one once."""
        return ((name, parameter.detach()) for name, parameter in self.model.named_parameters())

    def score(self, samples: Sequence[Sample]) -> int:
        """Fill in `old` and `reference` of a batch, in forward passes as large as training's; returns the padding
        positions computed on, each pass counted once."""
        padded = 0
        for part in self._split(samples, self._settings.micro_batches * self._settings.minibatches):
            packed = self._pack(part)
            padded += packed.padded_tokens
            with torch.no_grad():
                if self._settings.updates_per_batch > 1:
                    for sample, row in zip(part, self._rows(self.model, packed), strict=True):
                        sample.old = row
                if self._reference is not None:
                    for sample, row in zip(part, self._rows(self._reference, packed), strict=True):
                        sample.reference = row
        return padded

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

    def _logprobs(self, model: Any, packed: Packed) -> Tensor:
        # Checkpointing works in training mode only; dropout is off in both modes where the model has none.
        model.train(self._settings.optimizer.gradient_checkpointing and torch.is_grad_enabled())
        return policy_logprobs(model, packed, self._settings.decoding.temperature)

    def _rows(self, model: Any, packed: Packed) -> list[Tensor]:
        return list(self._logprobs(model, packed).split(packed.lengths.tolist()))

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
            _joined([sample.old for sample in samples]),
            _joined([sample.reference for sample in samples]),
        )


def _joined(rows: list[Tensor | None]) -> Tensor | None:
    present = [row for row in rows if row is not None]
    return torch.cat(present) if present else None


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
