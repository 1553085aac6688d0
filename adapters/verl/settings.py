"""A cell's task as overrides of verl's configuration (verl/trainer/config/ppo_trainer.yaml); imports no framework."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adapters.verl.asynchronous.overrides import mode_environment, mode_overrides
from adapters.verl.gpu.overrides import on_gpus
from harness.probe.kept import newest
from harness.probe.scratch import scratch_folder

Cell = Mapping[str, Any]
Overrides = dict[str, Any]

ROOT = "actor_rollout_ref"
ACTOR, ROLLOUT = f"{ROOT}.actor", f"{ROOT}.rollout"
HERE = Path(__file__).resolve().parent

NO_DUAL_CLIP = 1e6
"""verl clips the loss of negative advantages once more, at `clip_ratio_c`; no ratio comes near this."""
LOSSES = {"token_mean": "token-mean", "sequence_mean": "seq-mean-token-mean"}
DTYPES = {"float32": "fp32", "bfloat16": "bf16"}
SPARE_BATCHES = 2
"""Batches of prompts in the data beyond those that are trained on: an asynchronous mode asks for prompts ahead."""
POLL_SECONDS = 0.002
"""How often the trainer looks for finished prompts. verl's own 2 s, which no setting reaches, would round a short
generation up to 2 s; both are said in the report."""
LOGICAL_CPUS = 16
"""Ray's count of CPUs, which it only ever subtracts from: too few, and verl waits for ever without a word."""
OBJECT_STORE_BYTES = 256 << 20


def is_cpu(cell: Cell) -> bool:
    """Whether the cell runs without an accelerator."""
    return bool(cell["profile"].get("device", "cpu") == "cpu")


def updates_per_batch(task: Mapping[str, Any]) -> int:
    """Optimizer steps over one generated batch."""
    return int(task["minibatches"] * task["inner_epochs"])


def generated_batches(task: Mapping[str, Any]) -> int:
    """Generated batches of a run: verl's `global_steps`."""
    return int(task["steps"]) // updates_per_batch(task)


def micro_batch_size(task: Mapping[str, Any]) -> int:
    """Completions of one forward pass, also where log-probs are recomputed: another size would round differently."""
    return int(task["prompts_per_batch"] * task["group_size"] // (task["minibatches"] * task["micro_batches"]))


def home(cell: Cell) -> Path:
    """Where verl's own files of a cell lie."""
    return Path(cell["directory"]) / "verl"


def overrides(cell: Cell) -> Overrides:
    """Every setting that changes the work, spelt out: verl's defaults differ from the task's and from other
    frameworks'. A key that begins with `+` is none of verl's composed configuration."""
    settings = {
        **_data(cell),
        **_algorithm(cell["task"]),
        **_model(cell),
        **_actor(cell),
        **_rollout(cell),
        **_trainer(cell),
        **_machine(cell),
    }
    placed = settings | _cpu() if is_cpu(cell) else on_gpus(cell, settings)
    return placed | mode_overrides(cell)


def words(settings: Overrides) -> list[str]:
    """Overrides as Hydra reads them on a command line."""
    return [f"{key}={_word(value)}" for key, value in settings.items()]


def _word(value: Any) -> str:
    """Hydra's grammar takes JSON's numbers, null, true and lists, and strings in double quotes."""
    return json.dumps(str(value) if isinstance(value, Path) else value)


def _data(cell: Cell) -> Overrides:
    task, file = cell["task"], str(home(cell) / "prompts.parquet")
    return {
        "data.train_files": file,
        "data.val_files": file,
        "data.train_batch_size": task["prompts_per_batch"],
        "data.max_prompt_length": cell["adapter_options"].get("max_prompt_length", 512),
        "data.max_response_length": task["max_tokens"],
        "data.shuffle": False,
        "data.seed": cell["seed"],
        "data.dataloader_num_workers": 0,
        "data.truncation": "error",
    }


def _algorithm(task: Mapping[str, Any]) -> Overrides:
    return {
        "algorithm.adv_estimator": "grpo",
        "algorithm.norm_adv_by_std_in_grpo": task["advantage_std"] == "group",
        "algorithm.use_kl_in_reward": False,
    }


def _model(cell: Cell) -> Overrides:
    return {
        f"{ROOT}.model.path": str(Path(cell["bundle"]) / "model"),
        f"{ROOT}.model.enable_gradient_checkpointing": cell["task"]["gradient_checkpointing"],
        f"{ROOT}.model.use_remove_padding": not is_cpu(cell),
    }


def _actor(cell: Cell) -> Overrides:
    task = cell["task"]
    kl = task["kl_beta"] > 0
    return {
        f"{ACTOR}.strategy": "fsdp2",
        f"{ACTOR}.ppo_epochs": task["inner_epochs"],
        f"{ACTOR}.ppo_mini_batch_size": task["prompts_per_batch"] // task["minibatches"],
        f"{ACTOR}.ppo_micro_batch_size_per_gpu": micro_batch_size(task),
        f"{ACTOR}.shuffle": False,
        f"{ACTOR}.clip_ratio": task["clip_low"],
        f"{ACTOR}.clip_ratio_low": task["clip_low"],
        f"{ACTOR}.clip_ratio_high": task["clip_high"],
        f"{ACTOR}.clip_ratio_c": NO_DUAL_CLIP,
        f"{ACTOR}.loss_agg_mode": LOSSES[task["loss"]],
        f"{ACTOR}.entropy_coeff": 0,
        f"{ACTOR}.use_kl_loss": kl,
        f"{ACTOR}.kl_loss_coef": task["kl_beta"],
        f"{ACTOR}.kl_loss_type": "low_var_kl",
        f"{ACTOR}.data_loader_seed": cell["seed"],
        **_optimizer(task),
        **_precision(cell),
    }


def _optimizer(task: Mapping[str, Any]) -> Overrides:
    """verl's constant schedule has no warm-up unless one is asked for."""
    optim = f"{ACTOR}.optim"
    return {
        f"{optim}.lr": task["learning_rate"],
        f"{optim}.lr_scheduler_type": task["lr_schedule"],
        f"{optim}.lr_warmup_steps": 0,
        f"{optim}.betas": [task["adam_beta1"], task["adam_beta2"]],
        f"+{optim}.override_optimizer_config.eps": task["adam_eps"],
        f"{optim}.weight_decay": task["weight_decay"],
        f"{optim}.clip_grad": task["max_grad_norm"],
    }


def _precision(cell: Cell) -> Overrides:
    """Weights and optimizer states are float32 here as in the other frameworks. verl runs the forward pass under
    bfloat16 autocast unless `mixed_precision.param_dtype`, which no file of its configuration names, says otherwise."""
    autocast = cell["adapter_options"]["autocast"] or cell["task"]["precision"] == "bfloat16"
    mixed = f"+{ACTOR}.fsdp_config.mixed_precision"
    forward = {} if autocast else {f"{mixed}.{part}_dtype": "fp32" for part in ("param", "reduce", "buffer")}
    return {f"{ACTOR}.fsdp_config.model_dtype": "fp32", f"{ACTOR}.fsdp_config.seed": cell["seed"], **forward}


def _rollout(cell: Cell) -> Overrides:
    task = cell["task"]
    longest = cell["adapter_options"].get("max_prompt_length", 512) + task["max_tokens"]
    return {
        f"{ROLLOUT}.name": cell["adapter_options"]["engine"],
        f"{ROLLOUT}.n": task["group_size"],
        f"{ROLLOUT}.temperature": task["temperature"],
        f"{ROLLOUT}.top_p": task["top_p"],
        f"{ROLLOUT}.top_k": task["top_k"] or -1,
        f"{ROLLOUT}.ignore_eos": cell["track"] == "fixed_length",
        f"{ROLLOUT}.dtype": task["precision"],
        f"{ROLLOUT}.seed": cell["seed"],
        f"{ROLLOUT}.tensor_model_parallel_size": 1,
        f"{ROLLOUT}.max_model_len": longest,
        f"{ROLLOUT}.max_num_seqs": task["prompts_per_batch"] * task["group_size"],
        f"{ROLLOUT}.max_num_batched_tokens": max(2048, longest),
        f"{ROLLOUT}.logprobs_mode": "processed_logprobs",
        f"{ROLLOUT}.calculate_log_probs": True,
        f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": micro_batch_size(task),
        f"{ROLLOUT}.disable_log_stats": False,
        f"{ROLLOUT}.agent.num_workers": 1,
        f"{ROLLOUT}.agent.agent_loop_config_path": str(HERE / "turn.yaml"),
        f"{ROLLOUT}.agent.default_agent_loop": "rlaxes_turn",
        f"+{ROLLOUT}.agent.agent_loop_manager_class": "adapters.verl.agents.ProbedAgentLoopManager",
        "reward.num_workers": 1,
        "reward.custom_reward_function.path": str(HERE / "reward.py"),
        "reward.custom_reward_function.name": "compute_score",
    }


def _trainer(cell: Cell) -> Overrides:
    """verl's own `resume_mode` is `auto`, by which a dirty folder goes on where another run was."""
    every, kept = cell["adapter_options"]["checkpoint"]["every"], newest(cell)
    source = {"trainer.resume_from_path": str(Path(cell["directory"]) / kept.path)} if kept else {}
    return {
        **source,
        "trainer.v1.trainer_mode": "rlaxes_sync",
        "trainer.project_name": "rlaxes",
        "trainer.experiment_name": cell["cell_id"],
        "trainer.logger": ["file"],
        "trainer.nnodes": 1,
        "trainer.n_gpus_per_node": 1,
        "trainer.total_training_steps": generated_batches(cell["task"]),
        "trainer.total_epochs": 1,
        "trainer.val_before_train": False,
        "trainer.test_freq": -1,
        "trainer.save_freq": every or -1,
        "trainer.default_local_dir": str(home(cell) / "checkpoints"),
        "trainer.max_actor_ckpt_to_keep": cell["adapter_options"]["checkpoint"]["keep"],
        "trainer.resume_mode": "resume_path" if kept else "disable",
    }


def _machine(cell: Cell) -> Overrides:
    """Ray keeps its files in a folder of the cell's, and starts no worker before there is work for it."""
    init = "ray_kwargs.ray_init"
    return {
        f"{init}.num_cpus": LOGICAL_CPUS,
        f"+{init}.include_dashboard": False,
        f"+{init}._temp_dir": str(scratch_folder(cell["directory"])),
        f"+{init}.object_store_memory": OBJECT_STORE_BYTES,
        "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
    }


def _cpu() -> Overrides:
    """What verl's CUDA defaults ask for and a CPU has not: logical GPUs, no kernels to compile, no sleeping engine."""
    engine = f"{ROLLOUT}.engine_kwargs.vllm"
    return {
        "trainer.device": "cpu",
        "+ray_kwargs.ray_init.num_gpus": 1,
        f"+{ROOT}.model.override_config.attn_implementation": "eager",
        f"{ACTOR}.use_torch_compile": False,
        f"{ACTOR}.fsdp_config.use_torch_compile": False,
        f"{ROLLOUT}.enforce_eager": True,
        f"{ROLLOUT}.free_cache_engine": False,
        f"+{ROLLOUT}.enable_sleep_mode": False,
        f"+{engine}.async_scheduling": False,
        f"+{engine}.distributed_executor_backend": "uni",
        f"+{engine}.kv_cache_memory_bytes": 256 << 20,
    }


def environment(cell: Cell) -> dict[str, str]:
    """Variables that verl and what it starts read. Ray would start no worker before it is asked for one, but for as
    many as it counts CPUs, and every worker with a niceness of 15, which starves it beside anything else at work; and
    it would kill workers where the machine runs short of memory, whoever took it: a cell has a limit of its own."""
    ours = ["adapters.verl.plugin"]
    settings = {
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled",
        "RAY_prestart_worker_first_driver": "0",
        "RAY_worker_niceness": "0",
        # On a busy machine a worker imports torch for longer than the minute that Ray gives it to say that it is there.
        "RAY_worker_register_timeout_seconds": "600",
        "RAY_memory_monitor_refresh_ms": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    if is_cpu(cell):
        ours.insert(0, "adapters.verl.cpu.plugin")
        settings |= {"VERL_PLATFORM": "cpu", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    return settings | mode_environment(cell) | {"VERL_USE_EXTERNAL_MODULES": ",".join(ours)}
