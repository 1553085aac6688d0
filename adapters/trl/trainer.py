"""TRL's trainer with its stages bounded and its records read: every override calls TRL's own and changes nothing."""

from collections.abc import Iterator
from typing import Any

import torch
from transformers import TrainerCallback
from trl import GRPOTrainer

from adapters.trl.hooks import LOGPROBS, check_returned
from adapters.trl.observer import Observer
from harness.probe import Probe


class ProbedGRPOTrainer(GRPOTrainer):
    """`GRPOTrainer` under an observer; see `adapters.trl.hooks` for the places held on to and why."""

    def __init__(self, *args: Any, observer: Observer, **kwargs: Any) -> None:
        """Arguments of `GRPOTrainer`, and the observer that is told what happens."""
        super().__init__(*args, **kwargs)
        self.observer = observer
        observer.attach(self)
        self.clock = observer.clock
        self.add_callback(ObserverCallback(observer))

    def get_batch_samples(self, epoch_iterator: Iterator[Any], num_batches: int, device: torch.device) -> Any:
        """The first work of an optimizer step."""
        self.observer.step_begins()
        found = super().get_batch_samples(epoch_iterator, num_batches, device)
        self.observer.rows_given(found[0])
        return found

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        """Prepares inputs, computes the loss, and goes backward; its end is the end of the backward pass."""
        self.observer.trains()
        loss: torch.Tensor = super().training_step(model, inputs, num_items_in_batch)
        self.observer.trained_on(self._micro_batch, self._train_logprobs)
        return loss

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        self.observer.inputs_wanted()
        return super()._prepare_inputs(generation_batch)

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        self.observer.generation_begins(inputs)
        scored: dict[str, Any] = super()._generate_and_score_completions(inputs)
        self.observer.scored(scored)
        return scored

    def _generate(self, prompts: list[Any]) -> tuple[Any, ...]:
        values: tuple[Any, ...] = super()._generate(prompts)
        self.observer.generated(values)
        return values

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> torch.Tensor:
        self.clock.enter("verifier")
        self.clock.count(records=len(prompts))
        rewards: torch.Tensor = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        self.clock.enter("batch_assembly")
        return rewards

    def _get_per_token_logps_and_entropies(self, model: Any, input_ids: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if torch.is_grad_enabled():
            values = super()._get_per_token_logps_and_entropies(model, input_ids, *args, **kwargs)
            check_returned(LOGPROBS, values)
            self._train_logprobs = values[0].detach()
            return values
        self.clock.enter("logprob_recompute")
        self.clock.count(records=len(input_ids))
        values = super()._get_per_token_logps_and_entropies(model, input_ids, *args, **kwargs)
        self.clock.enter("batch_assembly")
        return values

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The training forward pass and the loss; TRL's metrics of the loss are computed in it too."""
        self.clock.enter("forward_backward")
        self._micro_batch = inputs
        return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        self.clock.enter("checkpoint")
        super()._save_checkpoint(model, trial)

    def _load_from_checkpoint(self, *args: Any, **kwargs: Any) -> Any:
        self.clock.enter("restore")
        return super()._load_from_checkpoint(*args, **kwargs)

    def _load_optimizer_and_scheduler(self, checkpoint: Any) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        self.clock.enter(None)

    def _load_rng_state(self, checkpoint: Any) -> None:
        super()._load_rng_state(checkpoint)
        self.observer.resumes()

    def _clip_grad_norm(self, model: Any) -> Any:
        self.clock.enter("optimizer_step")
        return super()._clip_grad_norm(model)

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        self.clock.enter("optimizer_step")
        return super()._get_grad_norm(model, grad_norm)


class ObserverCallback(TrainerCallback):
    """Steps end and are logged where only a callback is told."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Optimizer and engine exist: the initial weights can be accounted for."""
        self._observer.training_begins()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """The step is applied, its gradients are zeroed, the version is counted up."""
        self._observer.step_ends()

    def on_save(self, *_: Any, **__: Any) -> None:
        """A checkpoint is whole on disk."""
        self._observer.saved()

    def on_log(self, *_: Any, logs: Any = None, **__: Any) -> None:
        """TRL logged the step that just ended."""
        self._observer.logged(logs or {})


class ProgressCallback(TrainerCallback):
    """Tells the harness how far the run is; the bare twin of a run has it too."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe

    def on_step_end(self, _args: Any, state: Any, *_: Any, **__: Any) -> None:
        """One more optimizer step is done."""
        self._probe.progress(
            state.global_step, state.max_steps, f"optimizer step {state.global_step} of {state.max_steps}"
        )
