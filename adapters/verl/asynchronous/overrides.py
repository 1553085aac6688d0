"""What of verl's configuration a mode decides, by the dotted names of verl's own files; imports no framework."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adapters.verl.asynchronous.pace import Pace, mode_of, pace_of

V0 = ("fully_async", "one_step_off")
"""The modes that still sit on verl's older trainer, each with a main program and a configuration of its own."""

SEARCH_PATH = "pkg://verl.trainer.config"
"""Where the older modes' configurations find what they are built on; `one_step_off`'s own says a path of a checkout."""

PROGRAMS = {
    "fully_async": ("verl.experimental.fully_async_policy", "fully_async_ppo_trainer"),
    "one_step_off": ("verl.experimental.one_step_off_policy", "one_step_off_ppo_trainer"),
}
"""Of each of them the package and the name of its configuration."""

LOGICAL_CPUS = 64

_BUFFER = "adapters.verl.asynchronous.buffer"
_AGENT = "actor_rollout_ref.rollout.agent"


def mode_overrides(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of verl for the cell's mode, in addition to those that all modes share and in their place."""
    pace = pace_of(cell)
    if pace.mode == "sync":
        return {}
    out: dict[str, Any] = _v0(cell, pace) if pace.mode in V0 else _v1(cell, pace)
    out["algorithm.rollout_correction.bypass_mode"] = cell["adapter_options"]["old_logprobs"] == "rollout"
    out[f"{_AGENT}.agent_loop_config_path"] = str(Path(__file__).resolve().parent / "turns.yaml")
    return out if pace.mode == "colocate_async" else out | _separate(cell, pace)


def mode_environment(cell: Mapping[str, Any]) -> dict[str, str]:
    """Variables that the cell's mode needs.

    verl 0.9.1 hands `flush=True` to a logger where `separate_async` runs without replicas on the trainer's devices
    (trainer_separate_async.py _setup): it dies of that unless it logs warnings only.
    """
    return {"VERL_LOGGING_LEVEL": "WARN"} if mode_of(cell) == "separate_async" else {}


def _v1(cell: Mapping[str, Any], pace: Pace) -> dict[str, Any]:
    mode, ours = f"trainer.v1.{pace.mode}", f"rlaxes_{pace.mode}"
    out: dict[str, Any] = {
        "trainer.v1.trainer_mode": ours,
        # verl looks this up under the name that its trainer is registered by.
        f"+trainer.v1.{ours}.parameter_sync_step": pace.batches_per_sync,
        "data.train_batch_size": pace.prompts_per_sync,
        f"{mode}.num_warmup_batches": pace.warmup,
        "trainer.v1.sampler.max_off_policy_threshold": pace.age,
        "trainer.v1.sampler.max_off_policy_strategy": cell["adapter_options"]["off_policy"],
        "trainer.v1.sampler.custom_sampler.path": f"pkg://{_BUFFER}",
        "trainer.v1.sampler.custom_sampler.name": "WatchedBuffer",
        "trainer.total_training_steps": cell["task"]["steps"] // pace.updates_per_sync,
    }
    if pace.mode == "separate_async":
        out |= {f"{mode}.parameter_sync_step": pace.batches_per_sync}
        out |= {"actor_rollout_ref.actor.ppo_mini_batch_size": pace.prompts}
    return out


def _v0(cell: Mapping[str, Any], pace: Pace) -> dict[str, Any]:
    task, options = cell["task"], cell["adapter_options"]
    batches = task["steps"] // pace.updates_per_batch
    out: dict[str, Any] = {"trainer.use_v1": False, f"{_AGENT}.agent_loop_manager_class": None}
    if pace.mode == "one_step_off":
        return out | {"data.train_batch_size": pace.prompts, "trainer.total_training_steps": batches}
    return out | {
        "data.train_batch_size": 0,
        "data.gen_batch_size": 1,
        "rollout.n": task["group_size"],
        "rollout.total_rollout_steps": batches * pace.prompts,
        "async_training.staleness_threshold": pace.staleness,
        "async_training.trigger_parameter_sync_step": pace.batches_per_sync,
        "async_training.require_batches": task["minibatches"],
        "async_training.partial_rollout": options["partial_rollout"],
    }


def _separate(cell: Mapping[str, Any], pace: Pace) -> dict[str, Any]:
    """Rollout has devices of its own, and the trainer's hold no replica; weights go through a checkpoint engine."""
    replicas = cell["adapter_options"]["replicas"]
    on_gpu = cell["profile"].get("device") == "cuda"
    engine = "actor_rollout_ref.rollout.checkpoint_engine"
    place = "rollout" if pace.mode in V0 else "actor_rollout_ref.rollout"
    out: dict[str, Any] = {
        "actor_rollout_ref.hybrid_engine": False,
        f"{place}.nnodes": 1,
        f"{place}.n_gpus_per_node": replicas,
        "trainer.n_gpus_per_node": cell["profile"]["devices"] - replicas if on_gpu else 1,
        f"{engine}.backend": "nccl" if on_gpu else "shared_file",
    }
    if on_gpu:
        return out
    folder = str(Path(cell["directory"]) / "verl" / "weights")
    return out | {
        # Ray's counts are logical here; the older modes' actors alone ask for a dozen CPUs.
        "ray_kwargs.ray_init.num_cpus": LOGICAL_CPUS,
        "+ray_kwargs.ray_init.num_gpus": 1 + replicas,
        f"{engine}.custom_backend_module": "adapters.verl.cpu.transport",
        f"+{engine}.engine_kwargs.shared_file.folder": folder,
    }
