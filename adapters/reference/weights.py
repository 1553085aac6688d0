"""How weights get from the trainer to an engine: handed over in one process, or through a file that all can read."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from adapters.reference.batches import pack
from adapters.reference.messages import Shipment
from adapters.reference.policy import policy_logits, sampled_logprobs
from adapters.reference.settings import Settings
from adapters.reference.trainer import Trainer


class InProcessSender:
    """Hands the trainer's own tensors over; what an engine does with them is its `publication_kind`."""

    def __init__(self, trainer: Trainer, settings: Settings, kind: str) -> None:
        self._trainer, self._settings, self._kind = trainer, settings, kind

    @property
    def version(self) -> int:
        """Optimizer steps applied to the weights."""
        return self._trainer.version

    def ship(self, number: int) -> Shipment:
        """See `publisher.Sender.ship`."""
        tensors = self._trainer.weights
        moved = 0 if self._kind == "shared" else sum(t.numel() * t.element_size() for _, t in tensors())
        return Shipment(number, self._trainer.version, self._kind, moved, tensors=tensors)

    def sampled_logprobs(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """See `publisher.Sender.sampled_logprobs`."""
        packed = pack(pairs, pad=0, device=self._settings.device)
        with torch.no_grad():
            logits = policy_logits(self._trainer.model, packed)
            values = sampled_logprobs(logits, packed.targets, self._settings.decoding)
        return [row.tolist() for row in values.split(packed.lengths.tolist())]


class FileSender(InProcessSender):
    """Writes a full snapshot that every replica reads."""

    def ship(self, number: int) -> Shipment:
        """See `publisher.Sender.ship`."""
        tensors = {name: tensor.cpu().contiguous() for name, tensor in self._trainer.weights()}
        path = self._settings.directory / f"publication-{number % 2}.safetensors"
        save_file(tensors, path)
        moved = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
        return Shipment(number, self._trainer.version, "full", moved, str(path), tensors_digest(tensors.items()))


def tensors_digest(tensors: Iterable[tuple[str, Any]]) -> str:
    """SHA-256 over names and bytes, in the order of the names."""
    total = hashlib.sha256()
    for name, tensor in sorted(tensors, key=lambda item: item[0]):
        total.update(name.encode() + b"\0" + tensor.numpy().tobytes())
    return total.hexdigest()


def received(shipment: Shipment) -> list[tuple[str, Any]]:
    """The named tensors of a shipment. Raises ValueError where they are not what was sent."""
    if shipment.tensors is not None:
        return list(shipment.tensors())
    tensors = load_file(Path(shipment.path or ""))
    if tensors_digest(tensors.items()) != shipment.digest:
        raise ValueError("the tensors are not those that were sent")
    return list(tensors.items())
