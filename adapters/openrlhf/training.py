"""The trainer's side: DeepSpeed's steps in the policy actor's process, as spans and as records for the controller."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from adapters.openrlhf.cellfile import this_cell
from adapters.openrlhf.checkpoints import held_items, restored_tag, write_held
from adapters.openrlhf.readback import trainer_notes
from adapters.openrlhf.records import RECORDS
from harness.probe import Probe
from harness.probe.faults import Faults

Row = dict[str, Any]


class LossWatch:
    """In place of OpenRLHF's policy loss: calls it, and keeps what it was given and what came out."""

    def __init__(self, loss: Any) -> None:
        self._loss = loss
        self.last: tuple[Any, Any, Any, Any, float] | None = None

    def __call__(self, log_probs: Any, old_log_probs: Any, advantages: Any, **kwargs: Any) -> Any:
        """As `PolicyLoss`."""
        found = self._loss(log_probs, old_log_probs, advantages, **kwargs)
        mask = kwargs["action_mask"].bool()
        self.last = (log_probs.detach(), old_log_probs.detach(), advantages, mask, float(found[0].detach()))
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loss, name)


class TrainerSide:
    """One rank's optimizer steps. Times are perf_counter_ns."""

    def __init__(self, started: int) -> None:
        self.cell = this_cell()
        self._started = started
        self.rank = 0
        self._updates: list[Row] = []
        self._rows: list[Row] = []
        self._micro: Row = {}
        self._counts = {"padded_tokens": 0}
        self._loss = 0.0
        self._first: int | None = None
        self._epoch = 0

    def attach(self, trainer: Any, restores: Sequence[tuple[int, int]]) -> None:
        """The trainer is built: its weights are what the engine starts from, or what was restored, at those times."""
        self._trainer = trainer
        self._engine = trainer.actor.model
        self.rank = torch.distributed.get_rank()
        name = f"trainer-{self.rank}"
        self.probe = Probe(self.cell, name, enabled=bool(self.cell["observer"]))
        self.faults = Faults.of(self.cell, name)
        self._watch = trainer.actor_loss_fn = LossWatch(trainer.actor_loss_fn)
        if self.rank == 0:
            for key, value in trainer_notes(self._engine).items():
                self.probe.note(key, value)
        begun = self._started
        for start, end in restores:
            self.probe.add_span("startup", begun, start, trace_id="startup")
            self.probe.add_span("restore", start, end, trace_id="restore", policy_version=self.version)
            begun = end
            self.saved(restored_tag(self.cell))
        self.probe.add_span("startup", begun, time.perf_counter_ns(), trace_id="startup")
        self.probe.flush()

    @property
    def version(self) -> int:
        """Optimizer steps that were applied to the weights, also before this attempt."""
        return int(self._engine.global_steps - self._engine.skipped_steps)

    def span(self, stage: str, start: int, **counts: Any) -> None:
        """A stage that began then and ends now."""
        fields = {"policy_version": self.version, "step": self.version, **counts}
        self.probe.add_span(stage, start, time.perf_counter_ns(), trace_id=self.trace_id, **fields)

    trace_id = "trainer"

    def micro_begins(self, experience: Any) -> None:
        """A forward and backward pass over a micro-batch begins."""
        now = time.perf_counter_ns()
        if self._first is None:
            self._first = now
            self.faults.at("trainer.update", self.version)
        tokens = int(experience.attention_mask.sum())
        policy = int(experience.action_mask.sum())
        self._micro = {"t": now, "ids": list(experience.labels)}
        self._micro["counts"] = {
            "records": len(experience.labels),
            "input_tokens": tokens - policy,
            "policy_tokens": policy,
            "padded_tokens": experience.sequences.numel() - tokens,
        }

    def optimizer_step(self, call: Callable[[], None]) -> None:
        """The backward pass has ended, and DeepSpeed's `step` comes, which steps at the end of an accumulation."""
        boundary = self._engine.is_gradient_accumulation_boundary()
        before, rate = self.version, float(self._engine.get_lr()[0])
        self.span("forward_backward", self._micro["t"], **self._micro["counts"])
        self._keep_rows(before)
        start = time.perf_counter_ns()
        call()
        if boundary:
            self.span("optimizer_step", start)
            self._keep_update(before, rate)

    def _keep_rows(self, version: int) -> None:
        if self._watch.last is None:
            raise RuntimeError("hook drift: OpenRLHF steps before it asks its loss")
        logprobs, old, advantages, mask, loss = self._watch.last
        self._loss += loss / self._engine.gradient_accumulation_steps()
        self._counts["padded_tokens"] += self._micro["counts"]["padded_tokens"]
        for at, sample_id in enumerate(self._micro["ids"]):
            chosen = mask[at]
            if not chosen.any():  # its group has no verdict: no token of it is an action
                continue
            self._rows.append(
                {
                    "sample_id": sample_id,
                    "policy_version": version,
                    "trainer_logprobs": logprobs[at][chosen].float().numpy(),
                    "old_logprobs": old[at][chosen].float().numpy(),
                    "advantage": float(advantages[at][chosen][0]),
                    "policy_tokens": int(chosen.sum()),
                }
            )

    def _keep_update(self, before: int, rate: float) -> None:
        norm = self._engine.get_global_grad_norm()
        loss_fn = self._watch
        self._updates.append(
            {
                "policy_version_before": before,
                "policy_version_after": self.version,
                "t_start": self._first,
                "t_end": time.perf_counter_ns(),
                "applied": self.version > before,
                "loss": self._loss,
                "grad_norm": None if norm is None else float(norm),
                "learning_rate": rate,
                "padded_tokens": self._counts["padded_tokens"],
                "weight_dtype": str(next(self._engine.module.parameters()).dtype),
                "clip_low": loss_fn.clip_eps_low,
                "clip_high": loss_fn.clip_eps_high,
                "rows": self._rows,
            }
        )
        self._rows, self._loss, self._first = [], 0.0, None
        self._counts = {"padded_tokens": 0}

    def records(self) -> Mapping[str, Any]:
        """This rank's steps since the last call, for the controller, and nothing that it did not do."""
        updates, self._updates = self._updates, []
        return {f"{RECORDS}_{self.rank}": updates}

    def saved(self, tag: str) -> None:
        """DeepSpeed has written, or loaded, the checkpoint of that tag: what is held now, for the controller."""
        if self.rank == 0 and self.probe.enabled:
            write_held(self.cell, tag, {"version": self.version, "items": held_items(self._engine)})

    def close(self) -> None:
        """Training has ended."""
        self.probe.close()
