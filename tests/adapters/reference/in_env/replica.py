"""A trainer, replicas with an engine each, and a publisher between them, in one process."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from adapters.reference.engine import Engine
from adapters.reference.engine_transformers import TransformersEngine
from adapters.reference.lora import add_lora
from adapters.reference.messages import Answer, Receipt, Request, Shipment
from adapters.reference.publisher import Publisher
from adapters.reference.rollout import RolloutWorker
from adapters.reference.settings import Settings
from adapters.reference.trainer import Trainer
from adapters.reference.weights import MemorySender
from harness.probe import Probe
from harness.probe.faults import Faults
from harness.task.bundle import Prompt
from tests.adapters.reference.in_env import tiny

PROMPTS = [[3, 5, 7, 9, 11, 2, 4], [6, 8, 10, 4]]


class Listening(Probe):
    """A probe that keeps what it is told instead of writing it."""

    def __init__(self, settings: Settings) -> None:
        super().__init__({"directory": str(settings.directory), "run_id": "check", "attempt": 0}, enabled=False)
        self.rows: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []
        self.faults: list[tuple[str, str]] = []

    def publication(self, **row: Any) -> None:
        self.rows.append(row)

    def controls(self, rows: Sequence[Any]) -> None:
        self.answers += rows

    def fault(self, kind: str, cause: str, where: str, detail: str, **row: Any) -> None:
        self.faults.append((kind, detail))


class Pool:
    """Workers of this process, asked as replicas are."""

    def __init__(self, workers: Sequence[RolloutWorker]) -> None:
        self.workers = list(workers)

    @property
    def replicas(self) -> int:
        return len(self.workers)

    def stage(self, shipment: Shipment) -> list[Receipt]:
        return [worker.stage(shipment) for worker in self.workers]

    def activate(self, shipment: Shipment) -> list[Receipt]:
        return [worker.activate(shipment) for worker in self.workers]

    def revert(self, shipment: Shipment) -> list[Receipt]:
        return [worker.revert(shipment) for worker in self.workers]

    def control(self, prompts: Sequence[list[int]], tokens: int) -> list[Answer]:
        return [worker.control(prompts, tokens) for worker in self.workers]


@dataclass
class Stand:
    """All of it."""

    settings: Settings
    module: Any
    trainer: Trainer
    sender: Any
    pool: Pool
    publisher: Publisher
    probe: Listening

    def train(self, by: float = 0.1) -> None:
        """A training step's worth of change."""
        generator = torch.Generator().manual_seed(self.trainer.version + 1)
        with torch.no_grad():
            for parameter in (one for one in self.module.parameters() if one.requires_grad):
                size = parameter.abs().mean() or 1.0
                parameter += by * size * torch.randn(parameter.shape, generator=generator)
        self.trainer.version += 1

    def ask(self, worker: int = 0, prompts: Sequence[list[int]] = tuple(PROMPTS), n: int = 2) -> Answer:
        """Completions of prompts."""
        asked = [Prompt(f"p{number}", [], "", {}, "", ids) for number, ids in enumerate(prompts)]
        tokens = self.settings.decoding.max_tokens
        return self.pool.workers[worker].generate(Request("gen-0", asked, n, tokens, 7, 0))


def faulty(settings: Settings, point: str, action: str, role: str, at: int = 1) -> Settings:
    """The settings of a drill with one fault."""
    fault = {"name": "check", "faults": [{"point": point, "role": role, "at": at, "action": action}]}
    return replace(settings, fault=fault)


@contextmanager
def stand(
    folder: Path,
    engines: Sequence[Engine] | int = 1,
    settings: Settings = tiny.SETTINGS,
    module: Any = None,
    sender: type = MemorySender,
) -> Iterator[Stand]:
    """`engines`: their number, each an embedded one over a module of its own with other weights than the trainer's; or
    the engines themselves, made with these settings."""
    settings = replace(settings, directory=folder)
    module = module or tiny.model()
    probe = Listening(settings)
    made = isinstance(engines, int)
    if isinstance(engines, int):
        tied = module.config.tie_word_embeddings
        copies = [tiny.model(module.config.vocab_size, seed=50 + number, tied=tied) for number in range(engines)]
        for copy in copies if settings.publication == "adapter" else ():
            copy.load_state_dict(module.state_dict())
            add_lora(copy, settings.lora, seed=99)
        engines = [TransformersEngine(settings, copy, 80, tiny.EOS, shared=False) for copy in copies]
    trainer = Trainer(module, settings, pad=0, probe=probe)
    workers = [
        RolloutWorker(engine, settings, probe, Faults(settings, f"rollout-{number}"), number)
        for number, engine in enumerate(engines)
    ]
    pool = Pool(workers)
    ships = sender(trainer, settings, settings.publication, Faults(settings, "trainer-0"))
    publisher = Publisher(ships, pool, PROMPTS, settings, probe)
    try:
        yield Stand(settings, module, trainer, ships, pool, publisher, probe)
    finally:
        for engine in engines if made else ():
            engine.close()
