"""Builds the loop's parts for a cell, runs it, and writes what the run was."""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer

from adapters.reference import facts
from adapters.reference.buffer import RolloutBuffer
from adapters.reference.engines import make_engine
from adapters.reference.loop import Loop, Outcome, Parts
from adapters.reference.policy import check_output_layer, load_policy
from adapters.reference.publisher import Publisher
from adapters.reference.scheduler import PromptScheduler
from adapters.reference.scoring import Scorer
from adapters.reference.settings import Settings
from adapters.reference.trainer import Trainer
from harness.probe import Probe
from harness.probe.readback import model_facts, parameter_sha256, threads, versions
from harness.task.bundle import Bundle
from harness.task.verifier import Verifier


def run_cell(probe: Probe, started: int, stack: ExitStack) -> dict[str, Any]:
    """Run a cell to its end.

    Args:
        started: when the process began (perf_counter_ns).
        stack: closes engine and verifier.

    Returns:
        the run in short, also for a bare twin.
    """
    settings = Settings.from_cell(probe.cell)
    # Gradients of rare tokens are so small that their squares are denormal floats, on which a CPU is many times slower:
    # AdamW took 17 times as long. Threads take this over from the one that starts them, so it comes first.
    torch.set_flush_denormal(True)
    torch.set_num_threads(settings.threads)
    parts = build(settings, probe, stack)
    warm_up(parts, settings)
    parts.publisher.publish()
    _note_start(probe, settings, parts)
    probe.add_span("startup", started, time.perf_counter_ns(), trace_id="startup", device=settings.device)
    outcome = Loop(settings, parts, probe).run()
    digest = parameter_sha256(parts.trainer.model)
    _note_end(probe, outcome, digest)
    return {
        "train_seconds": (outcome.t_end - outcome.t_start) / 1e9,
        "final_loss": outcome.final_loss,
        "final_parameter_sha256": digest,
        "steps": settings.steps,
        "observer": probe.enabled,
    }


def build(settings: Settings, probe: Probe, stack: ExitStack) -> Parts:
    """The loop's parts, the engine and the verifier running."""
    bundle = Bundle.load(settings.bundle)
    prompts = [prompt.token_ids for prompt in bundle.prompts]
    verifier = stack.enter_context(Verifier.start(bundle, settings.verifier_timeout_s))
    tokenizer = AutoTokenizer.from_pretrained(bundle.model_dir, local_files_only=True)
    scheduler = PromptScheduler(bundle.prompts, settings)
    model = load_policy(Path(bundle.model_dir), settings.device)
    check_output_layer(model, prompts[0], settings.device)
    trainer = Trainer(model, settings, pad=0)
    engine = make_engine(settings, model, max(map(len, prompts)), tokenizer.eos_token_id)
    stack.callback(engine.close)
    return Parts(
        scheduler=scheduler,
        engine=engine,
        scorer=Scorer(verifier, tokenizer, probe),
        buffer=RolloutBuffer(settings, bundle, probe),
        trainer=trainer,
        publisher=Publisher(engine, trainer, prompts, settings, probe),
    )


def warm_up(parts: Parts, settings: Settings) -> None:
    """One discarded generation of the first batch's size: an engine's first call compiles and allocates."""
    ids = [prompt.token_ids for prompt in parts.scheduler.batch(0)]
    parts.engine.generate(ids, settings.group_size, settings.decoding.max_tokens)


def _note_start(probe: Probe, settings: Settings, parts: Parts) -> None:
    trainer = parts.trainer
    probe.note("settings", facts.settings_in_force(settings, trainer, probe.cell["task"]))
    probe.note("versions", versions(facts.PACKAGES))
    probe.note("threads", threads())
    probe.note("model", model_facts(trainer.model))
    probe.note("trainer_models", facts.TRAINER_MODELS)
    probe.note("engine", parts.engine.name)
    probe.note("device_count", 1)
    probe.note("absent_stages", facts.absent_stages(trainer))
    probe.flush()


def _note_end(probe: Probe, outcome: Outcome, digest: str) -> None:
    probe.note("final_parameter_sha256", digest)
    probe.note("window", {"t_start": outcome.t_start, "t_end": outcome.t_end})
