"""What a cell's settings come to in OpenRLHF; imports no framework."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

LAYOUTS = ("colocated_sync", "disaggregated_sync", "disaggregated_async")

Cell = Mapping[str, Any]


def batch_size(task: Mapping[str, Any]) -> int:
    """Completions of one generated batch."""
    return int(task["prompts_per_batch"] * task["group_size"])


def updates_per_batch(task: Mapping[str, Any]) -> int:
    """Optimizer steps that train on one generated batch."""
    return int(task["minibatches"] * task["inner_epochs"])


def generated_batches(task: Mapping[str, Any]) -> int:
    """Generated batches of a run; OpenRLHF trains on each as a whole."""
    return -(-int(task["steps"]) // updates_per_batch(task))


def folder(cell: Cell) -> Path:
    """Where all that OpenRLHF reads and writes lies."""
    return Path(cell["directory"]) / "openrlhf"


def computes_in_float32(cell: Cell) -> bool:
    """Whether the task's float32 is in force; OpenRLHF's own choice is bfloat16 for the trainer and for vLLM."""
    return bool(cell["adapter_options"]["precision"] == "task" and cell["task"]["precision"] == "float32")


def skip_reason(cell: Cell) -> str | None:
    """Why OpenRLHF cannot run this cell here, in one line, or None."""
    layout, task = cell["layout"]["name"], cell["task"]
    if layout not in LAYOUTS:
        return f"OpenRLHF has no layout {layout}; it has {', '.join(LAYOUTS)}"
    if layout == "colocated_sync" and cell["profile"]["device"] != "cuda":
        return "needs a GPU: OpenRLHF's colocated engine takes its weights by CUDA IPC; disaggregated layouts run here"
    if task["group_size"] < 2:
        return "OpenRLHF refuses groups of one completion (group_norm)"
    if task["steps"] % updates_per_batch(task):
        return f"OpenRLHF trains on a batch as a whole: steps must be a multiple of {updates_per_batch(task)}"
    if layout == "disaggregated_async" and cell["layout"]["lag_bound"] < 1:
        return "OpenRLHF's queue holds one batch at least: an asynchronous layout needs a lag bound of 1 or more"
    return None
