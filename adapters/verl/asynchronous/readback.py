"""What of the settings in force a mode decides, read back from verl's own configuration. Imports no framework."""

from collections.abc import Mapping
from typing import Any

from adapters.verl.asynchronous.overrides import V0
from adapters.verl.asynchronous.pace import Pace, mode_of, pace_of


def mode_in_force(config: Any, cell: Mapping[str, Any]) -> dict[str, Any]:
    """The mode, its bound on lag, and what takes the place of the synchronous mode's settings; see
    `readback.settings_in_force`.

    Args:
        config: verl's resolved configuration.
    """
    pace = pace_of(cell)
    out = {"verl.mode": pace.mode, "lag_bound": pace.lag_bound}
    if pace.mode == "sync":
        return out
    out |= _fully_async(config) if pace.mode == "fully_async" else _batches(config, cell, pace)
    return out if pace.mode in V0 else out | _v1(config, pace)


def rollout_devices(config: Any, cell: Mapping[str, Any]) -> int:
    """Devices that only rollout has."""
    if mode_of(cell) in ("sync", "colocate_async"):
        return 0
    rollout = config.actor_rollout_ref.rollout
    return int(rollout.nnodes * rollout.n_gpus_per_node)


def _batches(config: Any, cell: Mapping[str, Any], pace: Pace) -> dict[str, Any]:
    """Where several batches pass between two hand-overs, verl's train batch is all of them; `separate_async` has no
    minibatches of its own, each batch that it takes is one."""
    actor, per_step = config.actor_rollout_ref.actor, config.data.train_batch_size
    updates = per_step // actor.ppo_mini_batch_size * actor.ppo_epochs
    minibatches = int(cell["task"]["minibatches"]) if pace.mode == "separate_async" else updates // actor.ppo_epochs
    return {
        "steps": config.trainer.total_training_steps * updates,
        "prompts_per_batch": actor.ppo_mini_batch_size * minibatches,
        "minibatches": minibatches,
    }


def _fully_async(config: Any) -> dict[str, Any]:
    actor, mode = config.actor_rollout_ref.actor, config.async_training
    prompts = actor.ppo_mini_batch_size * mode.require_batches
    return {
        "steps": config.rollout.total_rollout_steps // prompts * mode.require_batches * actor.ppo_epochs,
        "prompts_per_batch": prompts,
        "minibatches": mode.require_batches,
        "verl.staleness_threshold": mode.staleness_threshold,
        "verl.trigger_parameter_sync_step": mode.trigger_parameter_sync_step,
        "verl.partial_rollout": bool(mode.partial_rollout),
    }


def _v1(config: Any, pace: Pace) -> dict[str, Any]:
    v1 = config.trainer.v1
    return {
        "verl.num_warmup_batches": v1[pace.mode].num_warmup_batches,
        "verl.parameter_sync_step": v1[pace.mode].get("parameter_sync_step", 1),
        "verl.max_off_policy_threshold": v1.sampler.max_off_policy_threshold,
        "verl.max_off_policy_strategy": v1.sampler.max_off_policy_strategy,
    }
