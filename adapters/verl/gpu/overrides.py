"""The settings of a cell on GPUs: trainer FSDP2 or Megatron, engine vLLM or SGLang, sharing devices or on their own.

The keys are those of verl 0.9.1's files under verl/trainer/config; imports no framework.
"""

from collections.abc import Mapping
from typing import Any

Cell = Mapping[str, Any]
Overrides = dict[str, Any]

ROOT = "actor_rollout_ref"
ACTOR, ROLLOUT = f"{ROOT}.actor", f"{ROOT}.rollout"
TRAINERS = ("fsdp2", "megatron")
ENGINES = ("vllm", "sglang")
FSDP_ONLY = (f"{ACTOR}.fsdp_config.", f"{ACTOR}.optim.lr_scheduler_type", f"{ACTOR}.optim.override_optimizer_config.")
"""Settings of FSDP's part of the configuration, for which Megatron's has other names or none."""


def trainer_devices(cell: Cell) -> int:
    """GPUs that train: all, where rollout takes turns with them, else those that no replica has."""
    devices = int(cell["profile"]["devices"])
    separate = cell["layout"]["placement"] == "disaggregated"
    return devices - int(cell["adapter_options"]["replicas"]) if separate else devices


def misfit(cell: Cell) -> str | None:
    """Why a cell cannot run on its GPUs, in one line; None where it can."""
    options, task = cell["adapter_options"], cell["task"]
    trainer, engine, devices = options["trainer"], options["engine"], trainer_devices(cell)
    if trainer not in TRAINERS:
        return f"verl has no trainer {trainer} that this adapter renders; it renders {', '.join(TRAINERS)}"
    if engine not in ENGINES:
        return f"verl has no engine {engine} on GPUs; it has {', '.join(ENGINES)}"
    if devices < 1:
        return f"needs more GPUs: {options['replicas']} are the engine's, and none of the profile's is left to train"
    if trainer == "megatron" and task["precision"] == "float32":
        return "verl's Megatron trainer has no float32 (workers/config/engine.py): it needs task.precision=bfloat16"
    if engine == "sglang" and cell["track"] == "fixed_length":
        return "verl hands ignore_eos to vLLM and not to SGLang: no track fixed_length with adapter.engine=sglang"
    completions = task["prompts_per_batch"] * task["group_size"] // (task["minibatches"] * task["micro_batches"])
    if completions % devices:
        return f"verl spreads a forward pass evenly: {completions} completions do not divide among {devices} GPUs"
    return None


def undriven(cell: Cell) -> str | None:
    """Why a cell that its GPUs can hold is rendered and no more, in one line; None where it is run."""
    options = cell["adapter_options"]
    if options["trainer"] != "fsdp2":
        return f"verl's trainer {options['trainer']} is rendered, not run: this adapter reads FSDP's passes alone"
    if options["engine"] != "vllm":
        return f"verl's engine {options['engine']} is rendered, not run: this adapter reads verl's vLLM server alone"
    return None


def on_gpus(cell: Cell, settings: Overrides) -> Overrides:
    """The settings of a cell, which are for one device of the trainer, for all its GPUs, its trainer and its engine."""
    out = settings | _shares(cell, settings) | _engine(cell)
    return _megatron(cell, out) if cell["adapter_options"]["trainer"] == "megatron" else out | _fsdp2()


def _shares(cell: Cell, settings: Overrides) -> Overrides:
    devices = trainer_devices(cell)
    sizes = (f"{ACTOR}.ppo_micro_batch_size_per_gpu", f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu")
    each = {key: settings[key] // devices for key in sizes}
    if cell["task"]["kl_beta"] > 0:
        each[f"{ROOT}.ref.log_prob_micro_batch_size_per_gpu"] = each[sizes[1]]
    return {"trainer.device": "cuda", "trainer.n_gpus_per_node": devices, **each}


def _engine(cell: Cell) -> Overrides:
    """An engine that shares its devices gives its memory back while the trainer works."""
    options = cell["adapter_options"]
    return {
        f"{ROLLOUT}.name": options["engine"],
        f"{ROLLOUT}.gpu_memory_utilization": options["gpu_memory_utilization"],
        f"{ROLLOUT}.free_cache_engine": cell["layout"]["placement"] == "colocated",
        f"{ROLLOUT}.enforce_eager": False,
    }


def _fsdp2() -> Overrides:
    """flash-attn, which needs a compiler to install, is in no lock: torch's own attention, and batches keep their
    padding, since verl takes it out by functions of flash-attn's (utils/attention_utils.py)."""
    return {
        f"{ACTOR}.strategy": "fsdp2",
        f"{ROOT}.model.use_remove_padding": False,
        f"+{ROOT}.model.override_config.attn_implementation": "sdpa",
    }


def _megatron(cell: Cell, settings: Overrides) -> Overrides:
    """verl hands its betas on to no optimizer of Megatron's (utils/megatron/optimizer.py init_megatron_optim_config):
    they are among the settings that it passes through unread."""
    task, optimizer = cell["task"], f"+{ACTOR}.optim.override_optimizer_config"
    kept = {key: value for key, value in settings.items() if not key.removeprefix("+").startswith(FSDP_ONLY)}
    return {
        "model_engine": "megatron",
        **kept,
        f"{ACTOR}.strategy": "megatron",
        f"{ACTOR}.optim.lr_decay_style": task["lr_schedule"],
        f"{optimizer}.adam_beta1": task["adam_beta1"],
        f"{optimizer}.adam_beta2": task["adam_beta2"],
        f"{optimizer}.adam_eps": task["adam_eps"],
        f"{ACTOR}.megatron.dtype": task["precision"],
        f"{ACTOR}.megatron.seed": cell["seed"],
        f"{ACTOR}.megatron.tensor_model_parallel_size": 1,
        f"{ACTOR}.megatron.pipeline_model_parallel_size": 1,
    }
