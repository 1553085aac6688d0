"""The settings in force and the facts of a run, read back from TRL's own objects."""

from collections.abc import Mapping
from typing import Any

from adapters.trl.advantages import STD_DDOF, STD_EPS

PACKAGES = ("trl", "torch", "transformers", "accelerate", "datasets", "tokenizers", "peft", "vllm", "numpy", "pyarrow")
LOSS_OF = {"dapo": "token_mean", "bnpo": "token_mean", "grpo": "sequence_mean"}


def settings_in_force(trainer: Any, cell: Mapping[str, Any]) -> dict[str, Any]:
    """Each task setting with the value that TRL's objects hold; keys that begin with `trl.` are TRL's own settings."""
    return (
        _batch_settings(trainer, cell)
        | _sampling_settings(trainer)
        | _loss_settings(trainer)
        | _optimizer_settings(trainer)
    )


def _batch_settings(trainer: Any, cell: Mapping[str, Any]) -> dict[str, Any]:
    arguments, task = trainer.args, cell["task"]
    return {
        "name": task["name"],
        "steps": trainer.state.max_steps,
        "warmup_steps": task["warmup_steps"],
        "verifier_timeout_s": task["verifier_timeout_s"],
        "prompts_per_batch": arguments.generation_batch_size // trainer.num_generations,
        "group_size": trainer.num_generations,
        "minibatches": arguments.steps_per_generation // arguments.gradient_accumulation_steps,
        "micro_batches": arguments.gradient_accumulation_steps,
        "inner_epochs": trainer.num_iterations,
        "trl.per_device_train_batch_size": arguments.per_device_train_batch_size,
        "trl.steps_per_generation": arguments.steps_per_generation,
        "trl.shuffle_dataset": trainer.shuffle_dataset,
        "trl.seed": arguments.seed,
    }


def _sampling_settings(trainer: Any) -> dict[str, Any]:
    """From the generation config that `generate` is given; vLLM is given TRL's own fields."""
    if trainer.use_vllm:
        held, minimum = trainer, (trainer.args.generation_kwargs or {}).get("min_tokens")
        longest = trainer.max_completion_length
    else:
        held, minimum = trainer.generation_config, trainer.generation_config.min_new_tokens
        longest = held.max_new_tokens
    return {
        "max_tokens": longest,
        "temperature": held.temperature,
        "top_p": held.top_p,
        "top_k": held.top_k,
        "min_p": held.min_p or 0.0,
        "trl.min_new_tokens": minimum,
        "trl.repetition_penalty": held.repetition_penalty,
    }


def _loss_settings(trainer: Any) -> dict[str, Any]:
    """`std_ddof` and `advantage_eps` are constants of TRL's source, which `adapters.trl.advantages` holds it to."""
    return {
        "loss": LOSS_OF[trainer.loss_type],
        "trl.loss_type": trainer.loss_type,
        "clip_low": trainer.epsilon_low,
        "clip_high": trainer.epsilon_high,
        "advantage_std": trainer.scale_rewards,
        "std_ddof": STD_DDOF,
        "advantage_eps": STD_EPS,
        "kl_beta": trainer.beta,
        "trl.use_bias_correction_kl": trainer.args.use_bias_correction_kl,
        "mask_truncated": trainer.mask_truncated_completions,
    }


def _optimizer_settings(trainer: Any) -> dict[str, Any]:
    """From the optimizer's own groups: the one whose weights decay comes first in Transformers' optimizer."""
    arguments, optimizer = trainer.args, trainer.optimizer
    group = optimizer.param_groups[0]
    kind = getattr(optimizer, "optimizer", optimizer)
    precision = "bfloat16" if arguments.bf16 else "float16" if arguments.fp16 else "float32"
    return {
        "learning_rate": group["initial_lr"],
        "adam_beta1": group["betas"][0],
        "adam_beta2": group["betas"][1],
        "adam_eps": group["eps"],
        "weight_decay": group["weight_decay"],
        "max_grad_norm": arguments.max_grad_norm,
        "lr_schedule": str(getattr(arguments.lr_scheduler_type, "value", arguments.lr_scheduler_type)),
        "precision": precision,
        "gradient_checkpointing": bool(trainer.model.is_gradient_checkpointing),
        "trl.optim": str(getattr(arguments.optim, "value", arguments.optim)),
        "trl.optimizer": type(kind).__name__,
        "trl.weight_dtype": str(next(trainer.model.parameters()).dtype).removeprefix("torch."),
    }


def absent_stages(trainer: Any, *, resumed: bool) -> dict[str, str]:
    """Stages that this run does not have, each with the reason: absent is not zero. `resumed`: whether TRL was told to
    go on from a checkpoint."""
    absent = {
        "queue_wait": "synchronous: a batch is trained on by the process that generated it, nothing is queued",
    }
    if trainer.args.save_strategy == "no":
        absent["checkpoint"] = "save_strategy is 'no'"
    if not resumed:
        absent["restore"] = "the run starts from the bundle's checkpoint"
    if trainer.use_vllm:
        reason = "TRL drops the timings of vLLM's requests: its generation is one stage, `generate`"
        absent |= {"prefill": reason, "decode": reason}
    else:
        absent["weight_sync"] = "the generating module is the trained one: no weights are moved"
        absent["generate"] = "prefill and decode are told apart"
    arguments = trainer.args
    every = arguments.steps_per_generation * arguments.num_iterations
    corrected = trainer.use_vllm and trainer.vllm_importance_sampling_correction
    if arguments.gradient_accumulation_steps % every == 0 and not corrected and trainer.beta == 0.0:
        absent["logprob_recompute"] = (
            "one optimizer step takes the whole generated batch, so TRL takes the old log-probs from the training "
            "forward pass itself (ratio 1 by construction) and there is no reference model"
        )
    return absent
