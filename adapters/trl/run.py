"""Builds TRL's trainer for a cell, trains, and writes what the run was."""

import json
import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from adapters.trl.batch import order_of_prompts
from adapters.trl.checkpoints import Checkpoints
from adapters.trl.hooks import hook_drift
from adapters.trl.observer import Observer
from adapters.trl.readback import PACKAGES
from adapters.trl.reward import VerifierReward
from adapters.trl.settings import generated_batches, grpo_arguments, uses_vllm
from adapters.trl.trainer import ProbedGRPOTrainer, ProgressCallback
from harness.errors import SystemFailure
from harness.probe import Probe
from harness.probe.hooks import require_hooks
from harness.probe.readback import model_facts, parameter_sha256, reserved_devices, threads, versions
from harness.task.bundle import Bundle
from harness.task.faulty_verifier import start_verifier

TRAINER_MODELS = ["temperature"]
"""Decoding knobs that TRL's trainer log-probs model: it divides the logits by the temperature and does no more."""


def run_cell(probe: Probe, started: int, stack: ExitStack) -> dict[str, Any]:
    """Run a cell to its end.

    Returns:
        the run in short, also for a bare twin: final loss, parameter hash, seconds that `train()` took.
    """
    require_hooks(hook_drift())
    cell = probe.cell
    torch.set_num_threads(cell["profile"]["threads"])
    bundle = Bundle.load(Path(cell["bundle"]))
    verifier = stack.enter_context(start_verifier(cell, bundle))
    reward = VerifierReward(verifier)
    if cell["layout"]["name"] == "disaggregated_sync":
        _start_server(cell, bundle, stack)
    trainer, observer = _build(probe, bundle, reward)
    if observer is not None:
        _note_start(probe, trainer)
        probe.add_span("startup", started, time.perf_counter_ns(), trace_id="startup")
    wall = _train(trainer, observer, Path(cell["directory"]))
    digest = parameter_sha256(trainer.model)
    if observer is not None:
        _note_end(probe, observer, digest)
    return {
        "train_loss": trainer.state.log_history[-1]["train_loss"],
        "final_parameter_sha256": digest,
        "train_seconds": wall,
        "observer": probe.enabled,
    }


def _start_server(cell: dict[str, Any], bundle: Bundle, stack: ExitStack) -> None:
    """Before torch first looks for devices: the trainer sees one, the server the others."""
    from adapters.trl.gpu.server import server_command, serving, split_devices

    served, trained = split_devices(os.environ.get("CUDA_VISIBLE_DEVICES"), cell["profile"]["devices"])
    os.environ["CUDA_VISIBLE_DEVICES"] = trained
    stack.enter_context(serving(server_command(str(bundle.model_dir), cell["adapter_options"]), served))


def _train(trainer: Any, observer: Observer | None, directory: Path) -> float:
    """Train; TRL's own log is written in either case, as far as it got. Returns wall seconds."""
    start = time.perf_counter()
    try:
        trainer.train(resume_from_checkpoint=observer.checkpoint if observer is not None else None)
    finally:
        trainer.state.save_to_json(str(directory / "trl" / "trainer_state.json"))
        if observer is not None:
            observer.ends()
    return time.perf_counter() - start


def _build(probe: Probe, bundle: Bundle, reward: VerifierReward) -> tuple[Any, Observer | None]:
    """TRL's trainer as it is (a bare twin), or under an observer."""
    cell = probe.cell
    tokenizer = AutoTokenizer.from_pretrained(bundle.model_dir, truncation_side="left", padding_side="left")
    arguments: dict[str, Any] = {
        "model": str(bundle.model_dir),
        "reward_funcs": reward,
        "args": GRPOConfig(**grpo_arguments(cell)),
        "train_dataset": _data_set(bundle, tokenizer, cell["task"]),
        "processing_class": tokenizer,
        "callbacks": [ProgressCallback(probe)],
    }
    if not probe.enabled:
        return GRPOTrainer(**arguments), None
    facts = _rollout_facts(cell, bundle)
    components = {name: facts[name] for name in ("tokenizer_hash", "template_hash", "verifier_version")}
    checkpoints = Checkpoints(probe, components, arguments["train_dataset"]["prompt_id"])
    observer = Observer(probe, reward, facts, checkpoints)
    return ProbedGRPOTrainer(**arguments, observer=observer), observer


def _data_set(bundle: Bundle, tokenizer: Any, task: dict[str, Any]) -> Dataset:
    """The prompts in the order in which the task takes them, in the form in which TRL's own tokenization gives the
    bundle's token ids.

    Raises:
        SystemFailure: TRL would use other token ids than the bundle's.
    """
    form = _identical_form(bundle, tokenizer)
    order = order_of_prompts(task, generated_batches(task), len(bundle.prompts))
    rows = [bundle.prompts[index] for index in order]
    return Dataset.from_list([{"prompt": getattr(prompt, form), "prompt_id": prompt.prompt_id} for prompt in rows])


def _identical_form(bundle: Bundle, tokenizer: Any) -> str:
    """Which of a prompt's forms TRL tokenizes to the bundle's ids (GRPOTrainer._tokenize_prompts)."""
    expected = [list(prompt.token_ids) for prompt in bundle.prompts]
    messages = [prompt.messages for prompt in bundle.prompts]
    chat = tokenizer.apply_chat_template(
        conversation=messages, add_generation_prompt=True, tokenize=True, return_dict=True
    )
    if chat["input_ids"] == expected:
        return "messages"
    if tokenizer(text=[prompt.text for prompt in bundle.prompts])["input_ids"] == expected:
        return "text"
    first = next(i for i, ids in enumerate(chat["input_ids"]) if ids != expected[i])
    raise SystemFailure(f"TRL would not use the bundle's token ids for prompt {bundle.prompts[first].prompt_id}")


def _rollout_facts(cell: dict[str, Any], bundle: Bundle) -> dict[str, Any]:
    """Columns of the rollouts table that are the same for the whole run."""
    task = cell["task"]
    decoding = {key: task[key] for key in ("temperature", "top_p", "top_k", "min_p", "max_tokens")}
    return {
        "run_id": cell["run_id"],
        "decoding": {**decoding, "stop": [], "seed": cell["seed"]},
        "verifier_version": bundle.verifier_version,
        "tokenizer_hash": bundle.tokenizer_hash,
        "template_hash": bundle.template_hash,
    }


def _note_start(probe: Probe, trainer: Any) -> None:
    probe.note("versions", versions(PACKAGES))
    probe.note("threads", threads())
    probe.note("model", model_facts(trainer.model))
    probe.note("trainer_models", TRAINER_MODELS)
    if probe.cell["track"] == "fixed_length":
        probe.note("distorted_sampling", "the end of sequence is suppressed and the rest renormalised (min_new_tokens)")
    probe.note("device_count", reserved_devices(probe.cell, trainer.accelerator.num_processes))
    probe.note("engine", _engine_name(probe.cell))
    probe.note("grpo_arguments", json.loads(json.dumps(grpo_arguments(probe.cell))))
    probe.flush()


def _note_end(probe: Probe, observer: Observer, digest: str) -> None:
    probe.note("final_parameter_sha256", digest)
    probe.note("window", observer.window)
    probe.note("probe_seconds", observer.probe_seconds())


def _engine_name(cell: dict[str, Any]) -> str:
    if not uses_vllm(cell):
        return "transformers.generate"
    return "vllm.server" if cell["layout"]["name"] == "disaggregated_sync" else "vllm.colocate"
