"""verl's own checkpoints, and what is kept beside each: verl resumes by its own means, and is then asked what it holds.

Of what verl keeps (utils/checkpoint/fsdp_checkpoint_manager.py, ppo/v1/trainer_base.py `_save_checkpoint`): weights,
optimizer, the learning-rate schedule and the random state of each trainer worker, the place in the data. It keeps
nothing of the rollout engine, whose sampling begins anew from its seed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.probe import Probe
from harness.probe.kept import Kept, digest_of, given_items, keep, newest, say_resumed
from harness.task.bundle import Bundle

IN_THE_WORKER = "what verl's trainer worker holds"
EVIDENCE = {
    "parameters": f"{IN_THE_WORKER}: all weights, after verl loaded actor/model_*.pt",
    "optimizer": f"{IN_THE_WORKER}: all states of its optimizer, after verl loaded actor/optim_*.pt",
    "lr_scheduler": f"{IN_THE_WORKER}: its schedule, after verl loaded actor/extra_state_*.pt",
    "rng": "torch's state in the trainer worker, and what the rollout engine has sampled since it was seeded",
    "step_and_version": "verl's global_steps times the optimizer steps of one",
    "dataset_cursor": "the next prompt that verl's data loader hands out, after it loaded data.pt",
    "prompt_scheduler": "file order: it has no state but the place in the data",
    "queue": "completions that verl holds and has not trained on; the synchronous trainer holds none between steps",
}


class Checkpoints:
    """Says of each checkpoint of verl's what it holds, and of each attempt what came back."""

    def __init__(self, probe: Probe) -> None:
        """`probe` is that of the process that writes the history."""
        self._probe = probe
        bundle = Bundle.load(Path(probe.cell["bundle"]))
        self._components = {
            "tokenizer": bundle.tokenizer_hash,
            "template": bundle.template_hash,
            "verifier": bundle.verifier_version,
        }

    @property
    def found(self) -> Kept | None:
        """The checkpoint that this attempt goes on from."""
        return newest(self._probe.cell)

    def items(self, worker: Mapping[str, str], place: Mapping[str, Any]) -> dict[str, str]:
        """Digest of each item as it is held now.

        Args:
            worker: digests of what the trainer worker holds.
            place: step, version, cursor, sampled (completions that the engine has sampled since it was seeded), queue.
        """
        held = given_items(self._probe.cell, self._components) | {
            name: worker[name] for name in ("parameters", "optimizer", "lr_scheduler")
        }
        return held | {
            "rng": digest_of([worker["rng"], place["sampled"]]),
            "step_and_version": digest_of([place["step"], place["version"]]),
            "dataset_cursor": digest_of(place["cursor"]),
            "prompt_scheduler": digest_of("file order"),
            "queue": digest_of(place["queue"]),
        }

    def saved(
        self, path: Path, t_start: int, worker: Mapping[str, str], place: Mapping[str, Any], state: Mapping[str, Any]
    ) -> None:
        """verl has written a checkpoint whole; `state` is what the controller wants back."""
        keep(self._probe, path, t_start, place["step"], place["version"], self.items(worker, place), state)

    def resumed(self, kept: Kept | None, worker: Mapping[str, str], place: Mapping[str, Any]) -> None:
        """verl has loaded `kept`, or begun again where it is None. Does nothing in a first attempt."""
        if self._probe.cell["attempt"] == 0:
            return
        say_resumed(self._probe, kept, place["step"], place["version"], self.items(worker, place), EVIDENCE)
