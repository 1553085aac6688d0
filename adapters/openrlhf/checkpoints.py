"""OpenRLHF's own checkpoints: what is held when one is written, and what is held after it was loaded [12.5.1].

OpenRLHF resumes by `--ckpt.load_enable`: DeepSpeed loads what its file `latest` names, the client state gives the place
in the data. Here nothing is restored but the adapter's own counters.
"""

import hashlib
import json
import random
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from adapters.openrlhf.settings import folder
from harness.probe.kept import Kept, digest_of, given_items
from harness.probe.readback import parameter_sha256, tensors_sha256

EVIDENCE = {
    "parameters": "SHA-256 of the module's parameters, as it was saved and after DeepSpeed had loaded it",
    "optimizer": "SHA-256 of the state of DeepSpeed's inner optimizer",
    "lr_scheduler": "digest of the scheduler's state_dict",
    "rng": "digest of the states of Python, NumPy and torch in the trainer: OpenRLHF keeps none and seeds them anew",
    "step_and_version": "OpenRLHF's global step and the steps that DeepSpeed says it applied",
    "dataset_cursor": "prompt ids of the first batch that was handed over after the restart",
    "prompt_scheduler": "OpenRLHF has none: the data set's order is the cell's",
    "queue": "batches in the queue or under way: OpenRLHF keeps none, and generates them anew",
}


def actor_folder(cell: Mapping[str, Any]) -> Path:
    """Where DeepSpeed writes, a folder a checkpoint."""
    return folder(cell) / "checkpoints" / "_actor"


def choose(cell: Mapping[str, Any], kept: Kept | None) -> bool:
    """Let DeepSpeed load the checkpoint that was written down as whole, and nothing else that lies there; returns
    whether there is one."""
    place = actor_folder(cell)
    if kept is None:
        shutil.rmtree(place.parent, ignore_errors=True)
        return False
    (place / "latest").write_text(Path(kept.path).name, encoding="ascii")
    return True


def restored_tag(cell: Mapping[str, Any]) -> str:
    """Under which name a later attempt says what it holds after loading."""
    return f"attempt-{cell['attempt']}"


def write_held(cell: Mapping[str, Any], tag: str, content: Mapping[str, Any]) -> None:
    """From the trainer's process, for the controller's, which waits for it."""
    place = folder(cell) / "held"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{tag}.json").write_text(json.dumps(content), encoding="utf-8")


def read_held(cell: Mapping[str, Any], tag: str) -> dict[str, Any]:
    """What `write_held` wrote."""
    found: dict[str, Any] = json.loads((folder(cell) / "held" / f"{tag}.json").read_text(encoding="utf-8"))
    return found


def all_items(
    cell: Mapping[str, Any], components: Mapping[str, str], tag: str, place: Sequence[int], cursor: Sequence[str]
) -> dict[str, str]:
    """Digests of all items: those that the trainer said under `tag`, and the controller's.

    Args:
        components: versions of tokenizer, template and verifier.
        place: optimizer steps taken, and those applied.
        cursor: ids of the prompts whose turn is next.
    """
    moving = {"step_and_version": list(place), "dataset_cursor": list(cursor)}
    moving |= {"prompt_scheduler": ["the data set's order"], "queue": []}
    found = given_items(cell, components) | read_held(cell, tag)["items"]
    return found | {name: digest_of(value) for name, value in moving.items()}


def held_items(engine: Any) -> dict[str, str]:
    """Digests of what the process of DeepSpeed's engine holds."""
    return {
        "parameters": parameter_sha256(engine.module),
        "optimizer": _optimizer_sha256(engine.optimizer),
        "lr_scheduler": digest_of(engine.lr_scheduler.state_dict()),
        "rng": _random_sha256(),
    }


def _optimizer_sha256(optimizer: Any) -> str:
    """SHA-256 over the state of every parameter, or of every group that ZeRO has made of them, in order."""
    import torch

    inner = getattr(optimizer, "optimizer", optimizer)
    trained = [parameter for group in inner.param_groups for parameter in group["params"]]
    pairs = [
        (f"{index:08d}.{name}", torch.as_tensor(value))
        for index, parameter in enumerate(trained)
        for name, value in sorted(inner.state[parameter].items())
    ]
    return tensors_sha256(pairs)


def _random_sha256() -> str:
    import numpy as np
    import torch

    kind, words, *rest = np.random.get_state()
    total = hashlib.sha256(f"{random.getstate()} {kind} {rest}".encode())
    total.update(np.asarray(words).tobytes() + torch.random.get_rng_state().numpy().tobytes())
    return total.hexdigest()
