"""A cell's task as the arguments of TRL's `GRPOConfig` (trl/trainer/grpo_config.py); imports no framework."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

Task = Mapping[str, Any]

SERVER_PORT = 51200
"""Port of TRL's vLLM server on this host, in the layout where it is a process of its own."""


def batch_size(task: Task) -> int:
    """Completions of one generated batch."""
    return int(task["prompts_per_batch"] * task["group_size"])


def updates_per_batch(task: Task) -> int:
    """Optimizer steps that train on one generated batch."""
    return int(task["minibatches"] * task["inner_epochs"])


def generated_batches(task: Task) -> int:
    """Generated batches of a run; the last one may be trained on in part only."""
    return -(-int(task["steps"]) // updates_per_batch(task))


def loss_type(task: Task) -> str:
    """TRL's name for the task's loss.

    `dapo` divides by the mean number of tokens of an accumulation window of the whole generated batch, `bnpo` by the
    tokens of the micro-batch at hand: the former is a token mean where one step takes the whole batch, the latter
    where nothing is accumulated. With several minibatches and accumulation neither is; `dapo` is the nearer one.
    """
    if task["loss"] == "sequence_mean":
        return "grpo"
    return "bnpo" if task["minibatches"] > 1 and task["micro_batches"] == 1 else "dapo"


def uses_vllm(cell: Mapping[str, Any]) -> bool:
    """Whether vLLM generates, and not the trained module itself."""
    return bool(cell["layout"]["name"] == "disaggregated_sync" or cell["adapter_options"].get("engine") == "vllm")


def grpo_arguments(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of `GRPOConfig`, every setting that changes the work spelt out: TRL's defaults differ.

    `per_device_train_batch_size` counts completions of one forward pass. Without `logging_nan_inf_filter=False` a loss
    that is not a number would be logged as the mean of the ones before.
    """
    task = cell["task"]
    return {
        "output_dir": str(Path(cell["directory"]) / "trl"),
        **_batch_arguments(task),
        **_sampling_arguments(cell),
        **_loss_arguments(task),
        **_optimizer_arguments(task),
        **_machine_arguments(cell),
        "seed": cell["seed"],
        "shuffle_dataset": False,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "report_to": "none",
        **_checkpoint_arguments(cell),
        "disable_tqdm": True,
        **(_vllm_arguments(cell) if uses_vllm(cell) else {}),
    }


def _checkpoint_arguments(cell: Mapping[str, Any]) -> dict[str, Any]:
    """`every` counts generated batches: within one, TRL's checkpoint would lose the rows that are buffered."""
    asked = cell["adapter_options"]["checkpoint"]
    if not asked["every"]:
        return {"save_strategy": "no"}
    steps = asked["every"] * updates_per_batch(cell["task"])
    return {"save_strategy": "steps", "save_steps": steps, "save_total_limit": asked["keep"]}


def _batch_arguments(task: Task) -> dict[str, Any]:
    parts = task["minibatches"] * task["micro_batches"]
    return {
        "max_steps": task["steps"],
        "per_device_train_batch_size": batch_size(task) // parts,
        "gradient_accumulation_steps": task["micro_batches"],
        "steps_per_generation": parts,
        "num_iterations": task["inner_epochs"],
        "num_generations": task["group_size"],
    }


def _sampling_arguments(cell: Mapping[str, Any]) -> dict[str, Any]:
    task = cell["task"]
    fixed = cell["track"] == "fixed_length"
    key = "min_tokens" if uses_vllm(cell) else "min_new_tokens"
    return {
        "max_completion_length": task["max_tokens"],
        "temperature": task["temperature"],
        "top_p": task["top_p"],
        "top_k": task["top_k"],
        "min_p": task["min_p"] or None,
        "repetition_penalty": 1.0,
        "generation_kwargs": {key: task["max_tokens"]} if fixed else None,
    }


def _loss_arguments(task: Task) -> dict[str, Any]:
    """`use_bias_correction_kl=False`: the task's KL term is the plain k3 estimate, not weighted by the ratio."""
    return {
        "loss_type": loss_type(task),
        "epsilon": task["clip_low"],
        "epsilon_high": task["clip_high"],
        "scale_rewards": task["advantage_std"],
        "beta": task["kl_beta"],
        "use_bias_correction_kl": False,
        "mask_truncated_completions": task["mask_truncated"],
    }


def _optimizer_arguments(task: Task) -> dict[str, Any]:
    return {
        "learning_rate": task["learning_rate"],
        "adam_beta1": task["adam_beta1"],
        "adam_beta2": task["adam_beta2"],
        "adam_epsilon": task["adam_eps"],
        "weight_decay": task["weight_decay"],
        "max_grad_norm": task["max_grad_norm"],
        "lr_scheduler_type": task["lr_schedule"],
        "warmup_steps": 0,
    }


def _machine_arguments(cell: Mapping[str, Any]) -> dict[str, Any]:
    task = cell["task"]
    return {
        "use_cpu": cell["profile"].get("device", "cpu") == "cpu",
        "bf16": task["precision"] == "bfloat16",
        "fp16": False,
        "gradient_checkpointing": task["gradient_checkpointing"],
        "model_init_kwargs": {"dtype": "float32"},
    }


def _vllm_arguments(cell: Mapping[str, Any]) -> dict[str, Any]:
    """vLLM in the trainer's process (`colocate`, with or without level-2 sleep) or as a server (`server`)."""
    options = cell["adapter_options"]
    common = {"use_vllm": True, "vllm_importance_sampling_correction": options["importance_sampling_correction"]}
    if cell["layout"]["name"] == "disaggregated_sync":
        return common | {"vllm_mode": "server", "vllm_server_host": "127.0.0.1", "vllm_server_port": SERVER_PORT}
    return common | {
        "vllm_mode": "colocate",
        "vllm_gpu_memory_utilization": options["gpu_memory_utilization"],
        "vllm_enable_sleep_mode": options["sleep_mode"],
    }
