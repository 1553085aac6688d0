"""The task's settings as OpenRLHF held them: read back from the arguments that its trainer was given, not from ours."""

from collections.abc import Mapping
from typing import Any

from adapters.openrlhf.shape import ESTIMATORS, LOSSES

STD_DDOF = 1
STD_EPS = 1e-9
"""Constants of openrlhf/trainer/ppo_utils/experience_maker.py, `compute_advantages_and_returns`; no flag sets them."""


def settings_in_force(args: Any, decoding: Mapping[str, Any], weight_dtype: str) -> dict[str, Any]:
    """Task settings by their names, and `openrlhf.*` for what has none.

    Args:
        args: the nested arguments that OpenRLHF's trainer holds (`strategy.args`).
        decoding: what the engine's sampling parameters held, as the rollouts' column of that name, and `ignore_eos`.
        weight_dtype: of the trained module's parameters, e.g. `torch.float32`.
    """
    return {
        **_batches(args),
        **{name: decoding[name] for name in ("max_tokens", "temperature", "top_p", "top_k", "min_p")},
        **_optimizer(args),
        **_objective(args),
        "precision": weight_dtype.removeprefix("torch."),
        "gradient_checkpointing": args.actor.gradient_checkpointing_enable,
        "openrlhf.ignore_eos": decoding["ignore_eos"],
        "openrlhf.zero_stage": args.ds.zero_stage,
        "openrlhf.correction": args.algo.advantage.is_correction_level,
        "openrlhf.policy_loss_type": args.actor.policy_loss_type,
        "openrlhf.dual_clip": args.actor.dual_clip,
        "openrlhf.partial_rollout": args.train.partial_rollout_enable,
        "openrlhf.async_queue_size": args.train.async_queue_size if args.train.async_enable else None,
    }


def _batches(args: Any) -> dict[str, Any]:
    """OpenRLHF's own arithmetic: it has no number of steps, its data ends (trainer/ppo_trainer.py prepare_datasets)."""
    prompts, group, step = args.rollout.batch_size, args.rollout.n_samples_per_prompt, args.train.batch_size
    ranks = (
        args.actor.num_nodes * args.actor.num_gpus_per_node // args.ds.tensor_parallel_size // args.ds.ring_attn_size
    )
    epochs = args.train.max_epochs
    return {
        "steps": args.data.max_samples * group // step * args.train.num_episodes * epochs,
        "prompts_per_batch": prompts,
        "group_size": group,
        "minibatches": prompts * group // step,
        "micro_batches": step // args.train.micro_batch_size // ranks,
        "inner_epochs": epochs,
    }


def _optimizer(args: Any) -> dict[str, Any]:
    adam, actor = args.actor.adam, args.actor
    warmup = f" after a warm-up of {actor.lr_warmup_ratio:g}" if actor.lr_warmup_ratio else ""
    return {
        "learning_rate": adam.lr,
        "lr_schedule": f"{actor.lr_scheduler}{warmup}",
        "adam_beta1": adam.betas[0],
        "adam_beta2": adam.betas[1],
        "adam_eps": adam.eps,
        "weight_decay": adam.weight_decay,
        "max_grad_norm": actor.max_norm,
    }


def _objective(args: Any) -> dict[str, Any]:
    low, high = args.actor.eps_clip_low_high
    losses, stds = ({theirs: ours for ours, theirs in names.items()} for names in (LOSSES, ESTIMATORS))
    estimator, mode = args.algo.advantage.estimator, args.actor.loss_agg_mode
    return {
        "clip_low": low,
        "clip_high": high,
        "loss": losses.get(mode, mode),
        "advantage_std": stds.get(estimator, estimator),
        "std_ddof": STD_DDOF,
        "advantage_eps": STD_EPS,
        "kl_beta": args.algo.kl.init_coef,
        "mask_truncated": False,
    }
