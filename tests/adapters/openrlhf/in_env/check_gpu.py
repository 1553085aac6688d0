"""Runs rendered for GPUs, as far as a machine without one carries them: what DeepSpeed and vLLM make of the flags.
`check_flags.py` is about the command line itself."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

import adapters.openrlhf
from adapters.openrlhf.flags import argv_of, flags_of
from adapters.openrlhf.parser import resolve
from adapters.openrlhf.shape import Shape, shape_of
from tests.adapters.openrlhf.cells import FILES, cell_of

os.environ["DS_ACCELERATOR"] = "cpu"
sys.path.append(str(Path(adapters.openrlhf.__file__).parent / "cpu" / "stand_in"))
SHAPES: dict[str, dict[str, Any]] = {
    "colocated": {"layout": "colocated_sync"},
    "disaggregated": {},
    "parallel": {"options": {"trainer_parallel": 2, "engine_parallel": 2}},
    "parallel_apart": {"options": {"trainer_parallel": 4, "engine_parallel": 4}},
}
TASKS: dict[str, dict[str, Any]] = {
    "one": {},
    "several": {"prompts_per_batch": 8, "minibatches": 2, "micro_batches": 2},
}


def deepspeed_of(cell: dict[str, Any], shape: Shape, monkeypatch: pytest.MonkeyPatch) -> Any:
    """DeepSpeed's own reading of what OpenRLHF's own strategy hands it, in a group of that many ranks."""
    from deepspeed.runtime.config import DeepSpeedConfig
    from openrlhf.utils.utils import get_strategy

    monkeypatch.setattr("deepspeed.comm.get_world_size", lambda group=None: shape.trainers)
    monkeypatch.setattr("deepspeed.comm.get_rank", lambda group=None: 0)
    args = resolve(argv_of(flags_of(cell, FILES)))
    adam = {"lr": args.actor.adam.lr, "betas": list(args.actor.adam.betas)}
    optimizer = {"type": "AdamW", "params": adam}
    return DeepSpeedConfig(get_strategy(args).get_ds_train_config(optimizer, max_norm=args.actor.max_norm))


@pytest.mark.parametrize("stage", range(4))
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("shape", SHAPES)
def test_deepspeed_steps_as_often_as_the_task_asks(
    shape: str, task: str, stage: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = SHAPES[shape]
    options = where.get("options", {}) | {"zero_stage": stage}
    cell = cell_of(profile="multi_gpu", **(where | {"options": options}), **TASKS[task])
    asked, ranks = cell["task"], shape_of(cell)
    held = deepspeed_of(cell, ranks, monkeypatch)
    completions = asked["prompts_per_batch"] * asked["group_size"] // asked["minibatches"]
    assert held.gradient_accumulation_steps == asked["micro_batches"]
    micro = held.train_micro_batch_size_per_gpu
    assert micro * held.gradient_accumulation_steps * ranks.data_parallel == completions
    assert held.zero_config.stage == stage
    assert held.tensor_parallel_config.autotp_size == ranks.trainer_parallel
    assert held.bfloat16_config.enabled
    assert held.gradient_clipping == asked["max_grad_norm"]


def test_vllm_has_every_argument_that_its_engines_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenRLHF's own function makes the engines; in the place of Ray's class stands one that keeps the arguments."""
    from openrlhf.trainer.ray import vllm_engine
    from vllm import AsyncEngineArgs

    made: list[dict[str, Any]] = []

    class Actors:
        def options(self, **_: Any) -> "Actors":
            return self

        def remote(self, **arguments: Any) -> None:
            made.append(arguments)

    monkeypatch.setattr(vllm_engine, "RolloutRayActor", Actors())
    monkeypatch.setattr(vllm_engine, "get_bundle_indices", lambda group, index, size: [index * size])
    args = resolve(argv_of(flags_of(cell_of(layout="colocated_sync", profile="multi_gpu"), FILES)))
    of_cell = (args.vllm.num_engines, args.vllm.tensor_parallel_size, "/model", args.train.seed, False, False)
    monkeypatch.setattr(vllm_engine, "PlacementGroupSchedulingStrategy", lambda **_: None)
    monkeypatch.setattr(vllm_engine, "batch_vllm_engine_call", lambda engines, method: None)
    vllm_engine.create_vllm_engines(
        *of_cell, args.vllm.enforce_eager, args.data.max_len, object(), args.vllm.gpu_memory_utilization, True
    )
    assert len(made) == 8
    not_vllms = {
        "full_determinism",
        "bundle_indices",
        "num_gpus",
        "agent_func_path",
        "remote_rm_url",
        "mm_pad_token_ids",
    }
    fields = set(AsyncEngineArgs.__dataclass_fields__)
    assert all(set(arguments) - not_vllms <= fields for arguments in made)
    assert {arguments["enable_sleep_mode"] for arguments in made} == {True}
    assert {arguments["gpu_memory_utilization"] for arguments in made} == {0.5}
