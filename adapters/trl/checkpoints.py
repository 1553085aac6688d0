"""TRL's own checkpoints: what is held when one is written, and what is held after TRL has loaded one [12.5.1].

TRL resumes by `train(resume_from_checkpoint=...)` (transformers.Trainer). Here nothing is restored but the adapter's
own counters.
"""

import hashlib
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from harness.probe import Probe
from harness.probe.kept import digest_of, given_items, keep, newest, say_resumed
from harness.probe.readback import parameter_sha256, tensors_sha256

EVIDENCE = {
    "parameters": "SHA-256 of the module's parameters, as it was saved and after TRL had loaded it",
    "optimizer": "SHA-256 of the optimizer's state_dict",
    "lr_scheduler": "digest of the scheduler's state_dict",
    "rng": "digest of the states of Python, NumPy and torch after TRL's _load_rng_state",
    "step_and_version": "TRL's global_step; the version counts applied steps",
    "dataset_cursor": "prompt ids of the first rows that TRL's data loader gave after the restart",
    "prompt_scheduler": "TRL has none: the data set's order is the cell's",
    "queue": "rows of the buffered batch that no step had trained on; TRL's checkpoint holds no buffer",
}
Left = tuple[str, int]
"""A sample's id and how many policy tokens it has."""


def optimizer_sha256(optimizer: Any) -> str:
    """SHA-256 over the state of every parameter, in the optimizer's own order."""
    state = optimizer.state_dict()["state"]
    pairs = [(f"{index:08d}.{name}", value) for index, held in state.items() for name, value in held.items()]
    return tensors_sha256((name, torch.as_tensor(value)) for name, value in pairs)


def random_sha256() -> str:
    """SHA-256 over the random states that TRL keeps."""
    kind, words, *rest = np.random.get_state()
    total = hashlib.sha256(f"{random.getstate()} {kind} {rest}".encode())
    total.update(np.asarray(words).tobytes() + torch.random.get_rng_state().numpy().tobytes())
    return total.hexdigest()


class Checkpoints:
    """The checkpoints of one cell, as the process that trains sees them."""

    def __init__(self, probe: Probe, components: Mapping[str, str], prompts: list[str]) -> None:
        """`prompts` are the ids of the data set's rows, in order; `components` the versions that a rollout carries."""
        self._probe, self._prompts = probe, prompts
        self._given = given_items(probe.cell, components)
        self.kept = newest(probe.cell)
        self.said = probe.cell["attempt"] == 0

    @property
    def path(self) -> str | None:
        """What TRL is told to resume from."""
        return str(Path(self._probe.cell["directory"], self.kept.path)) if self.kept is not None else None

    def written(self, trainer: Any, started: int, counters: Mapping[str, int], left: Sequence[Left]) -> None:
        """TRL has written one, from `started` on. `left` are the buffered samples that no step has trained on."""
        step = int(trainer.state.global_step)
        items = self._items(trainer, counters, self._cursor(trainer, step), left)
        path = Path(trainer.args.output_dir, f"checkpoint-{step}")
        keep(self._probe, path, started, step, step - counters["skipped"], items, {**counters, "left": left})

    def loaded(self, trainer: Any, counters: Mapping[str, int], rows: list[str]) -> None:
        """TRL has loaded one, or there was none. `rows` are the prompt ids that its data loader gave first."""
        self.said = True
        step = int(trainer.state.global_step)
        held = self._items(trainer, counters, rows, []) if self.kept is not None else {}
        say_resumed(self._probe, self.kept, step, step - counters["skipped"], held, EVIDENCE)

    def _cursor(self, trainer: Any, step: int) -> list[str]:
        """The prompts whose turn it is after `step`, as the data set's order has it."""
        arguments = trainer.args
        every = arguments.steps_per_generation * trainer.num_iterations // arguments.gradient_accumulation_steps
        size = arguments.generation_batch_size // trainer.num_generations
        start = step // every * size
        return self._prompts[start : start + size]

    def _items(
        self, trainer: Any, counters: Mapping[str, int], rows: list[str], left: Sequence[Left]
    ) -> dict[str, str]:
        return self._given | {
            "parameters": parameter_sha256(trainer.model),
            "optimizer": optimizer_sha256(trainer.optimizer),
            "lr_scheduler": digest_of(trainer.lr_scheduler.state_dict()),
            "rng": random_sha256(),
            "step_and_version": digest_of([int(trainer.state.global_step), counters["skipped"]]),
            "dataset_cursor": digest_of(rows),
            "prompt_scheduler": digest_of("the data set's order"),
            "queue": digest_of([sample for sample, _ in left]),
        }
