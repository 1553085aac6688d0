"""Cells of the reference loop, without composing them: the adapter's own defaults and a small task."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from adapters.reference.settings import Settings

ROOT = Path(__file__).resolve().parents[3]
OPTIONS = ROOT / "conf" / "adapter" / "reference.yaml"
TASK: dict[str, Any] = {
    "name": "arithmetic",
    "problems": {"count": 12},
    "steps": 4,
    "warmup_steps": 1,
    "prompts_per_batch": 4,
    "group_size": 4,
    "max_tokens": 5,
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "minibatches": 1,
    "micro_batches": 1,
    "inner_epochs": 1,
    "learning_rate": 1e-3,
    "adam_beta1": 0.9,
    "adam_beta2": 0.999,
    "adam_eps": 1e-8,
    "weight_decay": 0.0,
    "max_grad_norm": 1.0,
    "lr_schedule": "constant",
    "clip_low": 0.2,
    "clip_high": 0.2,
    "loss": "token_mean",
    "advantage_std": "group",
    "std_ddof": 1,
    "advantage_eps": 1e-4,
    "kl_beta": 0.0,
    "precision": "float32",
    "gradient_checkpointing": False,
    "verifier_timeout_s": 5.0,
    "mask_truncated": False,
}


@cache
def _defaults() -> str:
    return json.dumps(yaml.safe_load(OPTIONS.read_text(encoding="utf-8")))


def cell(folder: Path, bundle: Path | None = None, **changes: Any) -> dict[str, Any]:
    """A cell's file. `task` and `adapter_options` are laid over the defaults, mappings in the latter too; other
    `changes` replace."""
    folder.mkdir(parents=True, exist_ok=True)
    options = json.loads(_defaults())
    for name, value in changes.pop("adapter_options", {}).items():
        options[name] = options[name] | value if isinstance(value, dict) else value
    content: dict[str, Any] = {
        "run_id": "check",
        "cell_id": "reference.colocated_sync.free.r0",
        "attempt": 0,
        "fault": {"name": "none"},
        "layout": {"name": "colocated_sync", "placement": "colocated", "synchrony": "synchronous", "lag_bound": 0},
        "track": "free",
        "seed": 5,
        "observer": True,
        "bundle": str(bundle or folder),
        "directory": str(folder),
        "profile": {"name": "cpu", "device": "cpu", "threads": 2},
        "adapter_options": options,
        "task": TASK | changes.pop("task", {}),
    }
    return content | changes


def settings(folder: Path, **changes: Any) -> Settings:
    """The settings of such a cell."""
    return Settings.from_cell(cell(folder, **changes))
