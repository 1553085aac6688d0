"""Cells on GPUs, from the files of `conf/`, as `cell.json` holds them."""

from pathlib import Path
from typing import Any

import yaml

CONF = Path(__file__).resolve().parents[4] / "conf"
CELLS = [
    ("colocated_sync", "sync"),
    ("colocated_async", "colocate_async"),
    ("disaggregated_async", "separate_async"),
    ("disaggregated_async", "fully_async"),
    ("disaggregated_async", "one_step_off"),
]
"""Each of verl's modes with the layout that has it."""


def _conf(group: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CONF / group / f"{name}.yaml").read_text(encoding="utf-8"))
    return found


def gpu_cell(
    layout: str = "colocated_sync", profile: str = "multi_gpu", task: dict[str, Any] | None = None, **options: Any
) -> dict[str, Any]:
    """A cell of the task `arithmetic`; Megatron's is in bfloat16, the only precision that it has."""
    precision = "bfloat16" if options.get("trainer") == "megatron" else "float32"
    return {
        "cell_id": "verl",
        "directory": "/cell",
        "bundle": "/bundle",
        "attempt": 0,
        "seed": 17,
        "track": "free",
        "task": _conf("task", "arithmetic") | {"precision": precision} | (task or {}),
        "layout": _conf("layout", layout),
        "profile": _conf("profile", profile),
        "adapter_options": _conf("adapter", "verl") | options,
    }
