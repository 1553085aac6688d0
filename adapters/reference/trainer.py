"""The trainer: old and reference log-probs, gradient accumulation, and AdamW, on one rank or on several."""

import copy
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from adapters.reference import lora
from adapters.reference.batches import Packed, spread
from adapters.reference.correction import Correction
from adapters.reference.messages import Scores, Update
from adapters.reference.microbatches import MicroBatch, assemble, packed_of, shares
from adapters.reference.objective import kl_terms, policy_terms
from adapters.reference.optimizer import adamw, full_state, load_full_state
from adapters.reference.policy import policy_logprobs
from adapters.reference.ranks import Alone, Ranks, whole
from adapters.reference.regimes import refusal
from adapters.reference.samples import Sample
from adapters.reference.settings import Settings
from harness.errors import SystemFailure, UserError
from harness.probe import Probe
from harness.probe.faults import Faults
from harness.probe.probe import Span
from harness.probe.readback import tensors_sha256

UNIFIED_TOLERANCE = 1e-4
Rows = dict[str, list[float]]


class Trainer:
    """Trains one module. `version` is the number of optimizer steps applied to it [12.1.4].

    With several ranks each has a Trainer, and all make the same calls with the same arguments: every method is
    collective, and answers alike on all of them unless it says otherwise. Loss, gradient and weights are those of one
    rank, to rounding.
    """

    def __init__(self, model: Any, settings: Settings, pad: int, probe: Probe, ranks: Ranks | None = None) -> None:
        """`model` is changed in place: adapters are put into it where the settings say so, and it is sharded where
        there are several ranks. Raises UserError where the settings do not go together."""
        if why := refusal(settings):
            raise UserError(why)
        self.model, self.version, self.ranks = model, 0, ranks or Alone()
        self._faults = Faults(settings, f"trainer-{self.ranks.rank}")
        self.needs_scoring, self.regime = settings.needs_scoring, settings.logprobs
        self.correction = Correction.of(settings.staleness)
        self._settings, self._pad, self._probe = settings, pad, probe
        self._adapted = settings.lora.rank > 0
        self._reference = self._frozen() if settings.objective.kl_beta else None
        if self._adapted:
            lora.add_lora(model, settings.lora, settings.seed)
        self.ranks.shard(model)
        if settings.optimizer.gradient_checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        self._trained = {name: tensor for name, tensor in model.named_parameters() if tensor.requires_grad}
        self.optimizer = adamw(list(self._trained.values()), settings)

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """All weights by the names of the starting checkpoint, a tied one once; adapters merged into theirs. A sharded
        tensor is a `DTensor`: `ranks.whole` gathers it, `ranks.shard_of` says which rows this rank holds."""
        if self._adapted:
            return lora.merged_weights(self.model)
        return ((name, tensor.detach()) for name, tensor in self.model.named_parameters())

    def adapter_weights(self) -> Iterator[tuple[str, Tensor]]:
        """The adapters' tensors by their names in the module (`lora.peft_name` gives the engines'); sharded as in
        `weights`."""
        return lora.adapter_weights(self.model)

    def digest(self) -> str:
        """SHA-256 of the trained tensors."""
        return tensors_sha256((name, whole(tensor.detach())) for name, tensor in sorted(self._trained.items()))

    def full_state(self, into: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
        """See `optimizer.full_state`."""
        return full_state(self._trained, self.optimizer, self.version, into)

    def load_full_state(self, state: Mapping[str, Tensor]) -> None:
        """See `optimizer.load_full_state`."""
        self.version = load_full_state(state, self._trained, self.optimizer, self._settings.device)

    def score(self, samples: Sequence[Sample], trace_id: str, step: int) -> Scores:
        """Old and reference log-probs of a batch, in forward passes as large as training's."""
        parts = self._settings.micro_batches * self._settings.minibatches
        old: Rows = {}
        reference: Rows = {}
        with self._span("logprob_recompute", trace_id, step) as span, torch.no_grad():
            for share in shares(samples, parts, self.ranks):
                packed = packed_of(share.samples, self._pad, self._settings.device)
                _count(span, packed, len(share.samples), counted=share.counted)
                rows = self._rows(self.model, packed, share.samples) if self._settings.needs_old else {}
                others = self._reference_rows(packed, share.samples) if self._reference is not None else {}
                if share.counted:
                    old |= rows
                    reference |= others
        gather = self._gathered
        return Scores(
            gather(samples, old) if self._settings.needs_old else None,
            gather(samples, reference) if self._reference is not None else None,
        )

    def update(self, minibatch: Sequence[Sample], trace_id: str, step: int, lr_scale: float = 1.0) -> Update:
        """One optimizer step over a minibatch, at `lr_scale` times the learning rate; with nothing to train on, or a
        gradient that is not finite, it is not applied and leaves the weights as they are."""
        self._faults.at("trainer.update", step)
        start, before = time.perf_counter_ns(), self.version
        with self._span("batch_assembly", trace_id, step) as span:
            micro_batches = self.assemble(minibatch) if minibatch else []
            span.records = sum(len(micro.samples) for micro in micro_batches if micro.counted)
        rows: Rows = {}
        losses = []
        with self._span("forward_backward", trace_id, step) as span:
            for micro in micro_batches:
                _count(span, micro.packed, len(micro.samples), counted=micro.counted)
                loss, found = self.accumulate(micro)
                losses.append(loss)
                if micro.counted:
                    rows |= zip((sample.sample_id for sample in micro.samples), found, strict=True)
                    span.input_tokens += micro.packed.context_tokens
        norm, applied = None, False
        rate = self._settings.optimizer.learning_rate * lr_scale
        with self._span("optimizer_step", trace_id, step):
            if micro_batches:
                norm, applied = self._step_at(rate)
        total, padded = self.ranks.total([math.fsum(losses), float(span.padded_tokens)])
        return Update(
            loss=total if micro_batches else None,
            grad_norm=norm,
            applied=applied,
            version_before=before,
            version_after=self.version,
            learning_rate=rate,
            padded_tokens=int(padded),
            t_start=start,
            t_end=time.perf_counter_ns(),
            logprobs=self._gathered(minibatch, rows),
        )

    def assemble(self, minibatch: Sequence[Sample]) -> list[MicroBatch]:
        """This rank's forward passes over the minibatch; see `microbatches.shares`. Not collective."""
        return assemble(minibatch, self._settings, self._pad, self.ranks)

    def accumulate(self, micro: MicroBatch) -> tuple[float, list[list[float]]]:
        """Forward and backward; returns this pass's part of the minibatch's loss, and its log-probs [samples][policy
        tokens]: of this rank, not of all.

        Raises:
            SystemFailure: the regime is `unified` and the engine's log-probs are not the trainer's.
        """
        objective = self._settings.objective
        logp = self._logprobs(self.model, micro.packed)
        if self.regime == "unified":
            self._hold_unified(micro, logp)
        scale, kl_scale = self._log_scales(micro, logp)
        terms = policy_terms(logp, micro.old, micro.advantages, objective.clip_low, objective.clip_high, scale)
        if micro.reference is not None:
            terms = terms + objective.kl_beta * kl_terms(logp, micro.reference, kl_scale)
        loss = (terms * micro.weights).sum()
        loss.backward()
        return loss.item(), _cut(logp, micro.packed)

    def apply(self) -> tuple[float, bool]:
        """Clip and step; returns the gradient's norm before clipping, and whether the step was applied: a gradient
        that is not finite leaves the weights as they are."""
        limit = self._settings.optimizer.max_grad_norm or math.inf
        norm = whole(torch.nn.utils.clip_grad_norm_(self._trained.values(), limit)).item()
        applied = math.isfinite(norm)
        if applied:
            self.optimizer.step()
            self.version += 1
        self.optimizer.zero_grad(set_to_none=True)
        if self._settings.device != "cpu":
            torch.accelerator.synchronize()
        return norm, applied

    def _step_at(self, rate: float) -> tuple[float, bool]:
        (group,) = self.optimizer.param_groups
        group["lr"] = rate
        try:
            return self.apply()
        finally:
            group["lr"] = self._settings.optimizer.learning_rate

    def _log_scales(self, micro: MicroBatch, logp: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """What the correction multiplies policy and KL terms by, in logarithms. Where the behaviour policy is the old
        one, the objective's ratio is the importance ratio already, and only what the correction takes off is left."""
        if self.correction is None:
            return None, None
        now = logp.detach()
        if self.regime == "recompute":
            first = now if micro.old is None else micro.old
            weights = self.correction.log_weights(first, micro.behavior, micro.packed.lengths)
            return weights, weights
        weights = self.correction.log_weights(now, micro.behavior, micro.packed.lengths)
        return weights - (now.double() - micro.behavior.double()), weights

    def _hold_unified(self, micro: MicroBatch, logp: Tensor) -> None:
        fresh = torch.tensor([self._is_fresh(sample) for sample in micro.samples], device=logp.device)
        gaps = (logp.detach() - micro.behavior).abs()[fresh.repeat_interleave(micro.packed.lengths)]
        if gaps.numel() and not gaps.max().item() <= UNIFIED_TOLERANCE:
            raise SystemFailure(
                f"engine and trainer are not one stack: at lag 0 their log-probs differ by {gaps.max().item():.3g}"
            )

    def _is_fresh(self, sample: Sample) -> bool:
        return {sample.policy_version, *(sample.completion.versions or ())} == {self.version}

    def _frozen(self) -> Any:
        """The reference policy: with adapters it is the module without them."""
        if self._adapted:
            return self.model
        reference = copy.deepcopy(self.model).requires_grad_(False)
        self.ranks.shard(reference)
        return reference

    def _reference_rows(self, packed: Packed, samples: Sequence[Sample]) -> Rows:
        with lora.adapters_off(self.model) if self._adapted else nullcontext():
            return self._rows(self._reference, packed, samples)

    def _rows(self, model: Any, packed: Packed, samples: Sequence[Sample]) -> Rows:
        names = (sample.sample_id for sample in samples)
        return dict(zip(names, _cut(self._logprobs(model, packed), packed), strict=True))

    def _logprobs(self, model: Any, packed: Packed) -> Tensor:
        # Checkpointing works in training mode only; dropout is off in both modes where the model has none.
        model.train(self._settings.optimizer.gradient_checkpointing and torch.is_grad_enabled())
        return policy_logprobs(model, packed, self._settings.decoding.temperature)

    def _gathered(self, samples: Sequence[Sample], rows: Rows) -> list[list[float | None]]:
        """[S][T] from what each rank has computed."""
        lengths = [sample.completion.policy_tokens for sample in samples]
        mine = [rows.get(sample.sample_id, [0.0] * n) for sample, n in zip(samples, lengths, strict=True)]
        values = iter(self.ranks.total([value for row in mine for value in row]))
        masks = (sample.completion.policy_mask for sample in samples)
        return [spread([next(values) for _ in range(n)], mask) for n, mask in zip(lengths, masks, strict=True)]

    def _span(self, stage: str, trace_id: str, step: int) -> AbstractContextManager[Span]:
        where: dict[str, Any] = {"policy_version": self.version, "step": step, "device": self._settings.device}
        return self._probe.span(stage, trace_id=trace_id, **where)


def _cut(logp: Tensor, packed: Packed) -> list[list[float]]:
    return [row.tolist() for row in logp.detach().split(packed.lengths.tolist())]


def _count(span: Span, packed: Packed, records: int, *, counted: bool) -> None:
    if counted:
        span.records += records
        span.policy_tokens += packed.policy_tokens
        span.padded_tokens += packed.padded_tokens
    else:
        span.padded_tokens += packed.ids.numel()
