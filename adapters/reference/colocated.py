"""Builds the colocated layouts: every part in this process, the embedded engine over the trained module itself."""

from contextlib import ExitStack
from typing import Any

import torch
from transformers import AutoTokenizer

from adapters.reference.buffer import RolloutBuffer
from adapters.reference.engines import make_engine
from adapters.reference.facts import trainer_facts
from adapters.reference.keeper import Keeper, Kept
from adapters.reference.learner import Learner
from adapters.reference.loop import Loop, Parts
from adapters.reference.overlap import OverlapLoop
from adapters.reference.policy import check_output_layer, load_policy
from adapters.reference.publisher import Publisher
from adapters.reference.rollout import LocalPool, RolloutWorker
from adapters.reference.run import Built, Runnable
from adapters.reference.scheduler import PromptScheduler
from adapters.reference.scoring import LocalScorer
from adapters.reference.settings import Settings
from adapters.reference.trainer import Trainer
from adapters.reference.trainer_state import TrainerState
from adapters.reference.turns import longest_prompt
from adapters.reference.weights import InProcessSender
from harness.probe import Probe
from harness.probe.faults import Faults
from harness.task.bundle import Bundle
from harness.task.faulty_verifier import start_verifier


class LocalFacts:
    """What the trainer of this process can tell."""

    def __init__(self, settings: Settings, trainer: Trainer, task: dict[str, Any]) -> None:
        self._settings, self._trainer, self._task = settings, trainer, task

    def facts(self) -> dict[str, Any]:
        """See `facts.trainer_facts`."""
        return trainer_facts(self._settings, self._trainer, self._task)

    def digest(self) -> str:
        """See `Trainer.digest`."""
        return self._trainer.digest()


def build_colocated(settings: Settings, probe: Probe, stack: ExitStack) -> Built:
    """The loop's parts, engine and verifier running and warm."""
    # Gradients of rare tokens are so small that their squares are denormal floats, on which a CPU is many times slower:
    # AdamW took 17 times as long. Threads take this over from the one that starts them, so it comes first.
    torch.set_flush_denormal(True)
    torch.set_num_threads(settings.threads)
    bundle = Bundle.load(settings.bundle)
    prompts = [prompt.token_ids for prompt in bundle.prompts]
    scheduler = PromptScheduler(bundle.prompts, settings)
    verifier = stack.enter_context(start_verifier(probe.cell, bundle))
    tokenizer = AutoTokenizer.from_pretrained(bundle.model_dir, local_files_only=True)
    model = load_policy(bundle.model_dir, settings.device)
    check_output_layer(model, prompts[0], settings.device)
    trainer = Trainer(model, settings, pad=0, probe=probe)
    longest = longest_prompt(bundle.prompts, settings.decoding.max_tokens)
    engine = make_engine(settings, model, longest, tokenizer.eos_token_id, shared=True)
    stack.callback(engine.close)
    worker = RolloutWorker(engine, settings, probe, Faults(settings, "rollout-0"))
    worker.warm_up(scheduler.batch(0))
    pool = LocalPool(worker)
    beside = _beside(settings, probe, stack)
    buffer = RolloutBuffer(settings, bundle, probe)
    sender = InProcessSender(trainer, settings, engine.publication_kind, Faults(settings, "trainer-0"))
    publisher = Publisher(sender, pool, prompts, settings, probe)
    learner = Learner(settings, trainer, buffer, publisher, probe)
    state = TrainerState(trainer, Faults(settings, "trainer-0"))
    keeper = Keeper(settings, bundle, Kept(learner, scheduler, publisher, state), probe)
    stack.callback(keeper.close)
    parts = Parts(
        scheduler=scheduler,
        collectors=pool,
        scorer=LocalScorer(verifier, tokenizer, beside),
        buffer=buffer,
        learner=learner,
        publisher=publisher,
        keeper=keeper,
    )
    facts = LocalFacts(settings, trainer, probe.cell["task"])
    return Built(parts, _loop(settings, parts, pool, probe, beside, stack), facts, engine.name, devices=1)


def _beside(settings: Settings, probe: Probe, stack: ExitStack) -> Probe:
    """The ledger of what runs beside the loop: its own where something does."""
    if settings.layout != "colocated_overlap":
        return probe
    beside = Probe(probe.cell, "beside", enabled=probe.enabled)
    stack.callback(beside.close)
    return beside


def _loop(settings: Settings, parts: Parts, pool: LocalPool, probe: Probe, beside: Probe, stack: ExitStack) -> Runnable:
    if settings.layout != "colocated_overlap":
        return Loop(settings, parts, probe)
    loop = OverlapLoop(settings, parts, pool, probe, beside)
    stack.callback(loop.close)
    return loop
