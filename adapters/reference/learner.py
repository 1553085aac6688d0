"""Trains on what waits in the buffer, and writes every optimizer step with the records that it consumed."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from adapters.reference.buffer import RolloutBuffer
from adapters.reference.messages import Scores, Update
from adapters.reference.publisher import Publisher
from adapters.reference.samples import Sample
from adapters.reference.settings import Settings
from adapters.reference.staleness import StalenessPolicy
from harness.probe import Probe


class TrainerRole(Protocol):
    """The trainer as the loop sees it: the module in this process, or ranks elsewhere."""

    version: int
    needs_scoring: bool

    def score(self, samples: Sequence[Sample], trace_id: str, step: int) -> Scores:
        """Log-probs that the objective needs before a batch's first step."""
        ...

    def update(self, minibatch: Sequence[Sample], trace_id: str, step: int, lr_scale: float) -> Update:
        """One optimizer step, at `lr_scale` times the learning rate."""
        ...


class Learner:
    """Takes a batch through its optimizer steps. `step` counts them, `loss` is that of the last one applied."""

    def __init__(
        self, settings: Settings, trainer: TrainerRole, buffer: RolloutBuffer, publisher: Publisher, probe: Probe
    ) -> None:
        self._settings, self._trainer, self._buffer = settings, trainer, buffer
        self._publisher, self._probe = publisher, probe
        self._policy = StalenessPolicy(settings)
        self.step = 0
        self.loss: float | None = None

    @property
    def version(self) -> int:
        """Optimizer steps applied."""
        return self._trainer.version

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps beside what the trainer holds."""
        return {"step": self.step, "loss": self.loss}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave."""
        self.step, self.loss = state["step"], state["loss"]

    def learn(self, batch: int, trace_id: str) -> None:
        """All optimizer steps over the batch that waits in the buffer, as far as the run's last step; fewer, or smaller
        ones, where the staleness policy says so."""
        waiting = self._buffer.waiting
        if self._trainer.needs_scoring and waiting:
            scores = self._trainer.score(waiting, trace_id, self.step)
            for index, sample in enumerate(waiting):
                sample.old = scores.old[index] if scores.old else None
                sample.reference = scores.reference[index] if scores.reference else None
        if self._settings.logprobs != "recompute":
            for sample in waiting:
                sample.old = sample.completion.logprobs
        plan = self._policy.plan(waiting, self._trainer.version)
        for epoch in range(plan.epochs):
            for number, minibatch in enumerate(self._buffer.minibatches(batch, epoch)):
                if self.step < self._settings.steps:
                    name = f"batch-{batch}-mb-{number}" + (f"-e{epoch}" if epoch else "")
                    self._update(minibatch, name, trace_id, epoch, plan.lr_scale)
        self._buffer.settle()

    def _update(self, minibatch: Sequence[Sample], name: str, trace_id: str, epoch: int, lr_scale: float) -> None:
        update = self._trainer.update(minibatch, trace_id, self.step, lr_scale)
        self._write_trained(minibatch, update, name, epoch)
        self._write_update(minibatch, update, name)
        self._buffer.consumed(minibatch)
        self.loss = update.loss if update.applied else self.loss
        self.step += 1
        self._probe.progress(self.step, self._settings.steps, f"optimizer step {self.step}")

    def _write_trained(self, minibatch: Sequence[Sample], update: Update, name: str, epoch: int) -> None:
        rows = [
            {
                "sample_id": sample.sample_id,
                "batch_id": name,
                "step": self.step,
                "epoch": epoch,
                "policy_version": update.version_before,
                "published_version": self._publisher.published,
                "trainer_logprobs": logprobs,
                "old_logprobs": sample.old,
                "advantage": sample.advantage,
                "policy_tokens": sample.completion.policy_tokens,
                "t_step_start": update.t_start,
            }
            for sample, logprobs in zip(minibatch, update.logprobs, strict=True)
        ]
        self._probe.trained(rows)

    def _write_update(self, minibatch: Sequence[Sample], update: Update, name: str) -> None:
        objective = self._settings.objective
        self._probe.update(
            step=self.step,
            batch_id=name,
            policy_version_before=update.version_before,
            policy_version_after=update.version_after,
            t_start=update.t_start,
            t_end=update.t_end,
            applied=update.applied,
            loss=update.loss,
            grad_norm=update.grad_norm,
            learning_rate=update.learning_rate,
            records=len(minibatch),
            groups=len({sample.group_id for sample in minibatch}),
            policy_tokens=sum(sample.completion.policy_tokens for sample in minibatch),
            padded_tokens=update.padded_tokens,
            clip_low=objective.clip_low,
            clip_high=objective.clip_high,
        )
