"""verl's FSDP engine with its stages bounded and its log-probs read; in verl's own registry of engines.

Registered for the device `cpu`, for which verl has none, and for NVIDIA's GPUs, where an engine of a vendor's goes
before that of the device.
"""

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from verl.workers.engine.base import EngineRegistry
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead
from verl.workers.utils.padding import no_padding_2_padding

from adapters.verl.samples import sample_ids
from adapters.verl.watch import Watch

BACKENDS = ["fsdp", "fsdp2"]


@EngineRegistry.register(model_type="language_model", backend=BACKENDS, device="cpu")
@EngineRegistry.register(model_type="language_model", backend=BACKENDS, device="cuda", vendor="nvidia")
class ProbedFsdpEngine(FSDPEngineWithLMHead):
    """Every override calls verl's own and changes nothing. `watch` is set by the worker that owns the engine."""

    watch: Watch | None = None
    _span: Any = None
    _bytes = 0

    def train_batch(self, data: Any, loss_function: Callable[..., Any]) -> Any:
        """One optimizer step over a minibatch."""
        watch = self.watch
        if watch is None or not watch.enabled:
            return super().train_batch(data, loss_function)
        watch.begins()
        start, rate = time.perf_counter_ns(), float(self.optimizer.param_groups[0]["lr"])
        self._counts = {"records": 0, "policy_tokens": 0, "padded_tokens": 0}
        self._groups: set[str] = set()
        outputs = super().train_batch(data, loss_function)
        norm = float(outputs["metrics"]["grad_norm"])
        watch.updated(
            {
                "t_start": start,
                "t_end": time.perf_counter_ns(),
                "applied": math.isfinite(norm),
                "loss": float(sum(float(loss) for loss in outputs["loss"])),
                "grad_norm": norm,
                "learning_rate": rate,
                "groups": len(self._groups),
                **self._counts,
            }
        )
        return outputs

    def forward_backward_batch(self, data: Any, loss_function: Any, forward_only: bool = False) -> Any:
        """All forward passes, and the backward ones, of a minibatch."""
        if self.watch is None or not self.watch.enabled:
            return super().forward_backward_batch(data, loss_function, forward_only)
        with self.watch.span("logprob_recompute" if forward_only else "forward_backward") as span:
            self._span = span
            return super().forward_backward_batch(data, loss_function, forward_only)

    def forward_step(self, micro_batch: Any, loss_function: Any, forward_only: bool) -> Any:
        """One forward pass over a micro-batch."""
        loss, output = super().forward_step(micro_batch, loss_function, forward_only)
        if self.watch is not None and self.watch.enabled:
            self._count(micro_batch, forward_only)
            if not forward_only:
                self._keep(micro_batch, output["model_output"]["log_probs"])
        return loss, output

    def optimizer_step(self) -> Any:
        """Clips and steps."""
        if self.watch is None or not self.watch.enabled:
            return super().optimizer_step()
        with self.watch.span("optimizer_step") as span:
            span.records = self._counts["records"]
            return super().optimizer_step()

    def get_per_tensor_param(self, **kwargs: Any) -> tuple[Any, Any]:
        """The weights as verl hands them over; `handed_over_bytes` counts them as they pass."""
        named, peft = super().get_per_tensor_param(**kwargs)
        self._bytes = 0
        return self._counted(named), peft

    @property
    def handed_over_bytes(self) -> int:
        """Bytes of the last hand-over."""
        return self._bytes

    def _counted(self, named: Any) -> Iterator[tuple[str, torch.Tensor]]:
        for name, tensor in named:
            self._bytes += tensor.numel() * tensor.element_size()
            yield name, tensor

    def _count(self, micro_batch: Any, forward_only: bool) -> None:
        """verl pads a micro-batch to its longest sequence unless padding is removed, and fills a batch that a lost
        completion left too small with rows that have no policy token: these are padding too."""
        lengths = micro_batch["input_ids"].offsets().diff()
        policy = _policy_tokens(micro_batch)
        packed = bool(self.model_config.get("use_remove_padding", False))
        width = int(lengths.sum()) if packed else len(lengths) * int(lengths.max())
        real = policy > 0
        tokens = int(lengths[real].sum())
        counts = {"records": int(real.sum()), "policy_tokens": int(policy.sum()), "padded_tokens": width - tokens}
        for name, value in counts.items():
            setattr(self._span, name, getattr(self._span, name) + value)
            if not forward_only:
                self._counts[name] += value
        self._span.input_tokens += tokens - counts["policy_tokens"]

    def _keep(self, micro_batch: Any, log_probs: torch.Tensor) -> None:
        trainer = no_padding_2_padding(log_probs, micro_batch).float().cpu()
        old, advantages, masks = (micro_batch[name] for name in ("old_log_probs", "advantages", "response_mask"))
        assert self.watch is not None
        rows, counts = [], _policy_tokens(micro_batch).tolist()
        for row, (name, policy) in enumerate(zip(sample_ids(micro_batch), counts, strict=True)):
            if not policy:
                continue
            self._groups.add(name.rpartition(".g")[0])
            # The older trainers pad a response; a padded one of one turn has no token that is not the policy's.
            length = len(masks[row]) if masks.is_nested else policy
            rows.append(
                {
                    "sample_id": name,
                    "trainer_logprobs": trainer[row, :length].numpy(),
                    "old_logprobs": old[row][:length].float().cpu().numpy(),
                    "advantage": float(advantages[row][0]),
                    "policy_tokens": policy,
                }
            )
        self.watch.trained(rows)


def _policy_tokens(micro_batch: Any) -> torch.Tensor:
    """Policy tokens of each row."""
    return torch.stack([mask.sum() for mask in micro_batch["response_mask"].unbind()]).long().cpu()
