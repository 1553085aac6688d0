"""What a cell's settings come to in OpenRLHF; imports no framework."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

LAYOUTS = ("colocated_sync", "disaggregated_sync", "disaggregated_async")
FOLDER, EVENTS = "openrlhf", "events"
"""In a cell's directory: all that OpenRLHF reads and writes; in that, its event files, in one folder an attempt."""

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
    return Path(cell["directory"]) / FOLDER


def prompt_file(cell: Cell) -> Path:
    """The data set: a line for each prompt that is handed out, in order, with `input`, `label` (its number as text) and
    `prompt_id`."""
    return folder(cell) / "prompts.jsonl"


def computes_in_float32(cell: Cell) -> bool:
    """Whether the task's float32 is in force, by a patch of `cpu/`; OpenRLHF's own choice is bfloat16."""
    asked = cell["adapter_options"]["precision"] == "task" and cell["task"]["precision"] == "float32"
    return bool(asked and cell["profile"]["device"] == "cpu")
