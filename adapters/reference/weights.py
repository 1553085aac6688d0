"""How weights leave the trainer: handed over in one process, written into memory that this machine's processes share,
or into files that several machines can read. How they arrive: see `receiver`."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import xxhash
from safetensors.torch import save_file
from torch import Tensor

from adapters.reference.batches import pack
from adapters.reference.messages import Part, Place, Shipment, total_digest
from adapters.reference.policy import policy_logits, sampled_logprobs
from adapters.reference.ranks import shard_of, whole
from adapters.reference.settings import Settings
from adapters.reference.slots import Slots
from adapters.reference.trainer import Trainer
from harness.errors import SystemFailure
from harness.probe.faults import Faults

ALIGNMENT = 64
# Bytes are hashed while they are still in the cache from having been copied.
CHUNK_BYTES = 1 << 18
FLIPPED = 0xFF


class InProcessSender:
    """Hands the trainer's own tensors over; what an engine does with them is its `publication_kind`."""

    def __init__(self, trainer: Trainer, settings: Settings, kind: str, faults: Faults) -> None:
        self._trainer, self._settings, self._kind, self._faults = trainer, settings, kind, faults

    @property
    def version(self) -> int:
        """Optimizer steps applied to the weights."""
        return self._trainer.version

    def ship(self, number: int) -> Shipment:
        """See `publisher.Sender.ship`."""
        # One module for both sides cannot be withheld, nor damaged on the way.
        if self._kind != "shared" and self._faults.at("publication.ship"):
            raise SystemFailure("damaged on purpose")
        moved = 0 if self._kind == "shared" else sum(place.size for place in layout_of(self._weights()))
        return Shipment(number, self._trainer.version, self._kind, moved, tensors=self._weights)

    def sampled_logprobs(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """See `publisher.Sender.sampled_logprobs`."""
        packed = pack(pairs, pad=0, device=self._settings.device)
        with torch.no_grad():
            logits = policy_logits(self._trainer.model, packed)
            values = sampled_logprobs(logits, packed.targets, self._settings.decoding)
        return [row.tolist() for row in values.split(packed.lengths.tolist())]

    def _weights(self) -> Iterator[tuple[str, Tensor]]:
        return self._trainer.adapter_weights() if self._kind == "adapter" else self._trainer.weights()


class _Writer(InProcessSender):
    """One trainer rank, which writes its share of each publication for the replicas to read: all of it (rank 0, kinds
    `full` and `adapter`), or its own slice of each tensor (`sharded`, nothing is gathered)."""

    def __init__(
        self, trainer: Trainer, settings: Settings, kind: str, faults: Faults, rank: int = 0, ranks: int = 1
    ) -> None:
        super().__init__(trainer, settings, kind, faults)
        self._rank, self._ranks = rank, ranks
        self._layout = layout_of(self._weights())

    def ship(self, number: int) -> Shipment:
        """See `publisher.Sender.ship`; this rank's share of it. Raises OSError where there is no room."""
        parts = tuple(self._write(number))
        shipment = Shipment(
            number=number,
            policy_version=self._trainer.version,
            kind=self._kind,
            bytes=sum(part.size for part in parts),
            layout=self._layout,
            parts=parts,
            ranks=self._ranks,
        )
        return replace(shipment, digest=total_digest(parts))

    def _write(self, number: int) -> Iterable[Part]:
        raise NotImplementedError

    def _share(self) -> Iterator[tuple[Place, Tensor, int]]:
        """What this rank writes: where the tensor lies, the slice of it, and the slice's first byte in the tensor."""
        for place, (_, tensor) in zip(self._layout, self._weights(), strict=True):
            if self._kind == "sharded":
                shard = shard_of(tensor)
                if shard.local.numel() and (shard.local.shape != tensor.shape or self._rank == 0):
                    row = tensor.numel() // tensor.shape[0] * tensor.element_size() if tensor.dim() else 0
                    yield place, shard.local, shard.first * row
                continue
            # Every rank takes part in the gathering of a whole tensor.
            gathered = whole(tensor)
            if self._rank == 0:
                yield place, gathered, 0


class MemorySender(_Writer):
    """Writes into the slot that is not served."""

    def __init__(
        self, trainer: Trainer, settings: Settings, kind: str, faults: Faults, rank: int = 0, ranks: int = 1
    ) -> None:
        super().__init__(trainer, settings, kind, faults, rank, ranks)
        last = self._layout[-1]
        self._slots = shared_slots(last.start + last.size, rank, ranks)

    def close(self) -> None:
        """Forget the memory."""
        self._slots.close()

    def _write(self, number: int) -> list[Part]:
        self._slots.begin(number, self._rank)
        memory = self._slots.slot(number)
        parts = []
        for place, tensor, first in self._share():
            start, size = place.start + first, tensor.numel() * tensor.element_size()
            parts.append(
                Part(place.name, start, size, copy_bytes(tensor, memory[start : start + size]), self._slots.path)
            )
        if self._faults.at("publication.ship"):
            memory[parts[-1].start] ^= FLIPPED
        self._slots.finish(number, self._rank)
        return parts


class FileSender(_Writer):
    """Writes one file a rank; a half-written one never bears the name that replicas read."""

    def _write(self, number: int) -> list[Part]:
        path = self._settings.directory / f"publication-{number % 2}-rank{self._rank}.safetensors"
        tensors, parts = {}, []
        for place, tensor, first in self._share():
            tensors[place.name] = kept = tensor.detach().cpu().contiguous()
            digest = xxhash.xxh3_128(kept.reshape(-1).view(torch.uint8).numpy()).hexdigest()
            size = kept.numel() * kept.element_size()
            parts.append(Part(place.name, place.start + first, size, digest, str(path)))
        partial = path.with_suffix(".partial")
        save_file(tensors, partial, {part.name: str(part.start) for part in parts})
        damage = self._faults.at("publication.ship")
        _sync(partial)
        if damage:
            _flip_last_byte(partial)
        partial.replace(path)
        return parts


def make_sender(trainer: Trainer, settings: Settings, faults: Faults, rank: int) -> InProcessSender:
    """The sender of a trainer rank whose replicas are other processes: of this machine, or of several where a cluster
    is named."""
    kind = MemorySender if settings.pools.ray_address is None else FileSender
    return kind(trainer, settings, settings.publication, faults, rank, settings.pools.trainer_ranks)


def layout_of(weights: Iterable[tuple[str, Tensor]]) -> tuple[Place, ...]:
    """Where each tensor lies in a publication's bytes: one after another, each on a boundary that vector units like."""
    places, start = [], 0
    for name, tensor in weights:
        size = tensor.numel() * tensor.element_size()
        places.append(Place(name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), start, size))
        start += -(-size // ALIGNMENT) * ALIGNMENT
    return tuple(places)


def copy_bytes(tensor: Tensor, memory: memoryview) -> str:
    """Copy a tensor's bytes into `memory` (as many); returns the digest of what stands there."""
    source = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    target = torch.frombuffer(memory, dtype=torch.uint8)
    digest = xxhash.xxh3_128()
    step = CHUNK_BYTES if source.device.type == "cpu" else max(len(memory), 1)
    for start in range(0, len(memory), step):
        target[start : start + step].copy_(source[start : start + step])
        digest.update(memory[start : start + step])
    return digest.hexdigest()


def shared_slots(size: int, rank: int, ranks: int) -> Slots:
    """Rank 0 makes the slots, and tells the others where they are."""
    if ranks == 1:
        return Slots.create(size)
    slots = Slots.create(size) if rank == 0 else None
    where: list[Any] = [slots.path if slots else None]
    torch.distributed.broadcast_object_list(where, src=0)
    return slots or Slots.open(where[0], writable=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _flip_last_byte(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)[0]
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last ^ FLIPPED]))
