"""A cell's task, layout and profile as the flags of `openrlhf.cli.train_ppo_ray`; imports no framework.

OpenRLHF 0.11.2 has no configuration file and no configuration class: flags are all there is. Every default that would
change the work is pinned here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from adapters.openrlhf.settings import EVENTS, Cell, batch_size, folder
from adapters.openrlhf.shape import ESTIMATORS, LOSSES, on_gpu, queue_size, shape_of
from harness.errors import UserError

Flag = str | int | float | bool | tuple[float, ...] | None
"""True is a flag without a value; None and False leave it out; a tuple is several words."""

UNBOUNDED = 1e9
"""OpenRLHF clips what the estimator made of the rewards to (-10, 10) unless it is told otherwise."""

EVERY_FLAG = tuple(
    """
    actor.model_name_or_path data.prompt_dataset data.prompt_split data.input_key data.label_key data.max_samples
    train.agent_func_path ckpt.path ckpt.output_dir ckpt.save_steps ckpt.max_num ckpt.best_metric_key
    ckpt.load_enable logger.tensorboard_dir logger.wandb.run_name logger.logging_steps rollout.batch_size
    rollout.vllm_generate_batch_size rollout.n_samples_per_prompt rollout.micro_batch_size train.batch_size
    train.micro_batch_size train.max_epochs train.num_episodes train.seed data.max_len rollout.max_new_tokens
    rollout.temperature rollout.top_p algo.advantage.estimator algo.advantage.gamma
    algo.advantage.is_correction_level algo.advantage.is_correction_mode algo.advantage.is_correction_gating
    algo.advantage.is_correction_threshold algo.kl.init_coef algo.kl.use_loss algo.kl.estimator reward.clip_range
    actor.policy_loss_type actor.loss_agg_mode actor.eps_clip_low_high actor.aux_loss_coef actor.optim actor.adam.lr
    actor.adam.betas actor.adam.eps actor.adam.weight_decay actor.max_norm actor.lr_scheduler actor.lr_warmup_ratio
    actor.gradient_checkpointing_enable actor.num_nodes actor.num_gpus_per_node ref.num_nodes ref.num_gpus_per_node
    vllm.num_engines vllm.tensor_parallel_size vllm.sync_backend train.colocate_all train.colocate_actor_ref
    vllm.enable_sleep ds.enable_sleep train.async_enable train.async_queue_size train.partial_rollout_enable
    ds.param_dtype ds.zero_stage ds.tensor_parallel_size ds.attn_implementation ds.packing_samples
    vllm.gpu_memory_utilization vllm.enforce_eager
    """.split()  # noqa: SIM905  (a list of seventy literals would be seventy lines)
)
"""All that a cell may set, for the check that the installed version still has each."""


@dataclass(frozen=True)
class Files:
    """What a run reads.

    Attributes:
        model: the starting checkpoint with its tokenizer.
        prompts: a `.jsonl` with the columns `input` and `label`, `rows` lines, one for each prompt of the run.
        longest_prompt: tokens of the longest one.
        agent: the file of the agent executor.
    """

    model: Path
    prompts: Path
    rows: int
    longest_prompt: int
    agent: Path


def flags_of(cell: Cell, files: Files) -> dict[str, Flag]:
    """Every flag of a cell that `misfit` has nothing against.

    Raises:
        UserError: a path holds a character that OpenRLHF splits paths at.
    """
    _check_path(files.prompts)
    return {
        **_file_flags(cell, files),
        **_batch_flags(cell),
        **_sampling_flags(cell, files),
        **_loss_flags(cell),
        **_optimizer_flags(cell),
        **_placement_flags(cell),
        **_machine_flags(cell),
    }


def argv_of(flags: Mapping[str, Flag]) -> list[str]:
    """The words of a command line."""
    words: list[str] = []
    for flag, value in flags.items():
        if value is None or value is False:
            continue
        values = () if value is True else value if isinstance(value, tuple) else (value,)
        words += [f"--{flag}", *(str(word) for word in values)]
    return words


def _check_path(path: Path) -> None:
    if found := {"@", ","} & set(str(path)):
        raise UserError(f"OpenRLHF splits a path of data at {sorted(found)}: move the output folder away from {path}")


def _file_flags(cell: Cell, files: Files) -> dict[str, Flag]:
    """One folder of event files an attempt: OpenRLHF would name it by the minute in which it was started."""
    checkpoint, output = cell["adapter_options"]["checkpoint"], folder(cell)
    return {
        "actor.model_name_or_path": str(files.model),
        "data.prompt_dataset": str(files.prompts),
        "data.prompt_split": "train",
        "data.input_key": "input",
        "data.label_key": "label",
        "data.max_samples": files.rows,
        "train.agent_func_path": str(files.agent),
        "ckpt.path": str(output / "checkpoints"),
        "ckpt.output_dir": str(output / "final"),
        "ckpt.save_steps": checkpoint["every"] or -1,
        "ckpt.max_num": checkpoint["keep"],
        "ckpt.best_metric_key": "none",
        "ckpt.load_enable": cell["attempt"] > 0,
        "logger.tensorboard_dir": str(output / EVENTS),
        "logger.wandb.run_name": f"attempt_{cell['attempt']}",
        "logger.logging_steps": 1,
    }


def _batch_flags(cell: Cell) -> dict[str, Flag]:
    """`train.batch_size` counts the samples of an optimizer step, `micro_batch_size` those of one forward pass."""
    task = cell["task"]
    step = batch_size(task) // task["minibatches"]
    micro = step // task["micro_batches"] // shape_of(cell).data_parallel
    return {
        "rollout.batch_size": task["prompts_per_batch"],
        "rollout.vllm_generate_batch_size": task["prompts_per_batch"],
        "rollout.n_samples_per_prompt": task["group_size"],
        "rollout.micro_batch_size": micro,
        "train.batch_size": step,
        "train.micro_batch_size": micro,
        "train.max_epochs": task["inner_epochs"],
        "train.num_episodes": 1,
        "train.seed": cell["seed"],
    }


def _sampling_flags(cell: Cell, files: Files) -> dict[str, Flag]:
    """top_k, min_p and the fixed length have no flag: the agent executor sets them on the engine's parameters."""
    task = cell["task"]
    return {
        "data.max_len": files.longest_prompt + task["max_tokens"],
        "rollout.max_new_tokens": task["max_tokens"],
        "rollout.temperature": task["temperature"],
        "rollout.top_p": task["top_p"],
    }


def _loss_flags(cell: Cell) -> dict[str, Flag]:
    """`actor.dual_clip` and `actor.entropy_coef` left out are off; a KL coefficient of 0 loads no reference model."""
    task, correction = cell["task"], cell["adapter_options"]["correction"]
    return {
        "algo.advantage.estimator": ESTIMATORS[task["advantage_std"]],
        "algo.advantage.gamma": 1.0,
        "algo.advantage.is_correction_level": correction["level"],
        "algo.advantage.is_correction_mode": correction["mode"],
        "algo.advantage.is_correction_gating": correction["gating"],
        "algo.advantage.is_correction_threshold": (float(correction["low"]), float(correction["high"])),
        "algo.kl.init_coef": task["kl_beta"],
        "algo.kl.use_loss": task["kl_beta"] > 0,
        "algo.kl.estimator": "k3" if task["kl_beta"] else "k1",
        "reward.clip_range": (-UNBOUNDED, UNBOUNDED),
        "actor.policy_loss_type": "ppo",
        "actor.loss_agg_mode": LOSSES[task["loss"]],
        "actor.eps_clip_low_high": (float(task["clip_low"]), float(task["clip_high"])),
        "actor.aux_loss_coef": 0.0,
    }


def _optimizer_flags(cell: Cell) -> dict[str, Flag]:
    task = cell["task"]
    return {
        "actor.optim": "adam",
        "actor.adam.lr": task["learning_rate"],
        "actor.adam.betas": (task["adam_beta1"], task["adam_beta2"]),
        "actor.adam.eps": task["adam_eps"],
        "actor.adam.weight_decay": task["weight_decay"],
        "actor.max_norm": task["max_grad_norm"],
        "actor.lr_scheduler": task["lr_schedule"],
        "actor.lr_warmup_ratio": 0.0,
        "actor.gradient_checkpointing_enable": task["gradient_checkpointing"],
    }


def _placement_flags(cell: Cell) -> dict[str, Flag]:
    """`colocate_all` hands weights over by CUDA IPC; with `async_enable` it would colocate the trainers alone."""
    shape, layout = shape_of(cell), cell["layout"]
    colocated = layout["placement"] == "colocated"
    asynchronous = layout["synchrony"] == "asynchronous"
    reference = cell["task"]["kl_beta"] > 0
    return {
        "actor.num_nodes": 1,
        "actor.num_gpus_per_node": shape.trainers,
        "ref.num_nodes": 1,
        "ref.num_gpus_per_node": shape.trainers,
        "vllm.num_engines": shape.engines,
        "vllm.tensor_parallel_size": shape.engine_parallel,
        "vllm.sync_backend": "nccl",
        "train.colocate_all": colocated,
        "train.colocate_actor_ref": reference and not colocated,
        "vllm.enable_sleep": colocated,
        "ds.enable_sleep": colocated,
        "train.async_enable": asynchronous,
        "train.async_queue_size": queue_size(cell) if asynchronous else None,
        "train.partial_rollout_enable": asynchronous and cell["adapter_options"]["partial_rollout"],
    }


def _machine_flags(cell: Cell) -> dict[str, Flag]:
    """bf16 is the only data type of ours that the parser takes; float32 on a CPU is a patch of `cpu/`."""
    options, gpu = cell["adapter_options"], on_gpu(cell)
    attention = options["attention"] if gpu else "eager"
    return {
        "ds.param_dtype": "bf16",
        "ds.zero_stage": options["zero_stage"],
        "ds.tensor_parallel_size": options["trainer_parallel"],
        "ds.attn_implementation": attention,
        "ds.packing_samples": gpu and attention.startswith("flash_attention"),
        "vllm.gpu_memory_utilization": options["gpu_memory_utilization"],
        "vllm.enforce_eager": not gpu,
    }
