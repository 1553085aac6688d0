"""Run in the reference loop's environment by `benchmarks.publication`: publishes from this process to a replica in
another, and copies as many bytes from memory to memory, in turn; prints the seconds of both as JSON."""

import json
import sys
import time
from collections.abc import Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from adapters.reference.engines import make_engine
from adapters.reference.messages import Answer, Receipt, Shipment
from adapters.reference.policy import load_policy
from adapters.reference.publisher import Publisher
from adapters.reference.rollout import RolloutWorker
from adapters.reference.settings import Settings
from adapters.reference.trainer import Trainer
from adapters.reference.weights import make_sender
from harness.probe import Probe
from harness.probe.faults import Faults
from harness.task.bundle import Bundle

PAIRS = 9


def serve(cell: dict[str, Any], calls: Connection) -> None:
    """The replica: answers calls until there are no more."""
    settings, probe = Settings.from_cell(cell), Probe(cell, "rollout-0", enabled=False)
    torch.set_num_threads(settings.pools.rollout_threads)
    bundle = Bundle.load(settings.bundle)
    longest = max(len(prompt.token_ids) for prompt in bundle.prompts)
    engine = make_engine(settings, load_policy(bundle.model_dir, settings.device), longest, -1, shared=False)
    worker = RolloutWorker(engine, settings, probe, Faults(settings, "rollout-0"))
    calls.send(True)
    while asked := calls.recv():
        calls.send(getattr(worker, asked[0])(*asked[1]))
    engine.close()


class Replica:
    """The replica of the other process, asked as all replicas are."""

    replicas = 1

    def __init__(self, calls: Connection) -> None:
        self._calls = calls

    def stage(self, shipment: Shipment) -> list[Receipt]:
        """See `publisher.Receivers`."""
        return self._ask("stage", shipment)

    def activate(self, shipment: Shipment) -> list[Receipt]:
        """See `publisher.Receivers`."""
        return self._ask("activate", shipment)

    def revert(self, shipment: Shipment) -> list[Receipt]:
        """See `publisher.Receivers`."""
        return self._ask("revert", shipment)

    def control(self, prompts: Sequence[list[int]], tokens: int) -> list[Answer]:
        """See `publisher.Receivers`."""
        return self._ask("control", prompts, tokens)

    def _ask(self, method: str, *arguments: Any) -> list[Any]:
        self._calls.send((method, arguments))
        return [self._calls.recv()]


def main() -> None:
    """`publish.py CELL_FILE`."""
    cell = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    settings, probe = Settings.from_cell(cell), Probe(cell, enabled=False)
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=serve, args=(cell, theirs))
    child.start()
    torch.set_num_threads(settings.pools.trainer_threads)
    bundle = Bundle.load(settings.bundle)
    trainer = Trainer(load_policy(bundle.model_dir, settings.device), settings, pad=0, probe=probe)
    ours.recv()
    sender = make_sender(trainer, settings, Faults(settings, "trainer-0"), 0)
    publisher = Publisher(sender, Replica(ours), [prompt.token_ids for prompt in bundle.prompts], settings, probe)
    weights = [tensor for _, tensor in trainer.weights()]
    copies = [torch.zeros_like(tensor) for tensor in weights]
    pairs = []
    for number in range(PAIRS + 1):
        start = time.perf_counter()
        for source, target in zip(weights, copies, strict=True):
            target.copy_(source)
        copied = time.perf_counter() - start
        outcome = publisher.publish()
        phases = {name: seconds for name, seconds in outcome.seconds.items() if name != "verify_s"}
        # The first of each touches its memory for the first time.
        if number:
            pairs.append({"copy": copied, "publication": sum(phases.values()), "phases": phases})
    ours.send(None)
    child.join()
    size = sum(tensor.numel() * tensor.element_size() for tensor in weights)
    print(json.dumps({"bytes": size, "pairs": pairs}))


if __name__ == "__main__":
    main()
