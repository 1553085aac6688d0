"""Cells of the TRL adapter for tests, as `cell.json` holds them."""

from pathlib import Path
from typing import Any

TASK: dict[str, Any] = {
    "name": "arithmetic",
    "problems": {"count": 24, "seed": 0, "operators": "+", "max_operand": 4},
    "steps": 3,
    "warmup_steps": 1,
    "prompts_per_batch": 4,
    "group_size": 4,
    "max_tokens": 6,
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "minibatches": 1,
    "micro_batches": 1,
    "inner_epochs": 1,
    "learning_rate": 3e-4,
    "lr_schedule": "constant",
    "adam_beta1": 0.9,
    "adam_beta2": 0.999,
    "adam_eps": 1e-8,
    "weight_decay": 0.0,
    "max_grad_norm": 1.0,
    "clip_low": 0.2,
    "clip_high": 0.2,
    "loss": "token_mean",
    "advantage_std": "group",
    "std_ddof": 1,
    "advantage_eps": 1e-4,
    "kl_beta": 0.0,
    "mask_truncated": False,
    "precision": "float32",
    "gradient_checkpointing": False,
    "verifier_timeout_s": 5.0,
}
OPTIONS: dict[str, Any] = {
    "name": "trl",
    "engine": "generate",
    "gpu_memory_utilization": 0.3,
    "sleep_mode": False,
    "importance_sampling_correction": True,
    "checkpoint": {"every": 0, "keep": 2},
}
PROFILES: dict[str, dict[str, Any]] = {
    "cpu": {"name": "cpu", "device": "cpu", "devices": 1, "threads": 1},
    "one_gpu": {"name": "one_gpu", "device": "cuda", "devices": 1, "threads": 8},
    "multi_gpu": {"name": "multi_gpu", "device": "cuda", "devices": 2, "threads": 8},
}


def cell_of(
    directory: Path,
    bundle: Path = Path("bundle"),
    *,
    layout: str = "colocated_sync",
    track: str = "free",
    profile: str = "cpu",
    observer: bool = True,
    attempt: int = 0,
    options: dict[str, Any] | None = None,
    **task: Any,
) -> dict[str, Any]:
    """A cell in `directory`; keyword arguments that are no field of a cell change its task."""
    unknown = set(task) - set(TASK)
    assert not unknown, f"no task setting {unknown}"
    return {
        "run_id": "test/trl",
        "cell_id": "trl",
        "adapter": "trl",
        "package": "adapters.trl",
        "layout": {"name": layout, "lag_bound": 0},
        "track": track,
        "repeat": 0,
        "seed": 17,
        "observer": observer,
        "bundle": str(bundle),
        "directory": str(directory),
        "attempt": attempt,
        "fault": {"name": "none"},
        "profile": PROFILES[profile],
        "model": {"name": "tiny"},
        "adapter_options": OPTIONS | (options or {}),
        "task": TASK | task,
    }
