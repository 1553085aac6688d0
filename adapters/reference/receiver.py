"""How weights arrive at a replica: mapped from memory, or read from files, and held against their digests before
anything is served from them."""

import warnings
from pathlib import Path
from typing import Any

import torch
import xxhash
from safetensors import SafetensorError, safe_open
from torch import Tensor

from adapters.reference.messages import Part, Place, Shipment, total_digest
from adapters.reference.slots import Slots


class Receiver:
    """Takes shipments in for one replica. Tensors from shared memory are the mapped bytes themselves, not a copy, and
    cannot be written to."""

    def __init__(self) -> None:
        self._slots: dict[str, Slots] = {}

    def receive(self, shipment: Shipment) -> list[tuple[str, Any]]:
        """The named tensors of a shipment.

        Raises:
            ValueError: they are not what was sent, or not all of it.
            OSError: they are not there.
        """
        if shipment.tensors is not None:
            return list(shipment.tensors())
        check_parts(shipment)
        slots = self._mapped(shipment)
        if slots and not slots.holds(shipment.number, shipment.ranks):
            raise ValueError("it is half-written: not every trainer rank has finished its share")
        memory = slots.slot(shipment.number) if slots else read_files(shipment)
        for part in shipment.parts:
            if xxhash.xxh3_128(memory[part.start : part.start + part.size]).hexdigest() != part.digest:
                raise ValueError(f"the bytes of {part.name} are not those that were sent")
        return [(place.name, tensor_at(memory, place)) for place in shipment.layout]

    def intact(self, shipment: Shipment) -> bool:
        """Whether the memory that a shipment's tensors are views of still holds that publication. True where they are
        of no shared memory."""
        slots = self._mapped(shipment) if shipment.tensors is None else None
        return slots is None or slots.holds(shipment.number, shipment.ranks)

    def close(self) -> None:
        """Forget what was mapped; the tensors stay."""
        for slots in self._slots.values():
            slots.close()
        self._slots.clear()

    def _mapped(self, shipment: Shipment) -> Slots | None:
        path = shipment.parts[0].path
        if path.endswith(".safetensors"):
            return None
        if path not in self._slots:
            self._slots[path] = Slots.open(path)
        return self._slots[path]


def check_parts(shipment: Shipment) -> None:
    """Hold the parts that the ranks wrote to the layout: together they are every tensor, each byte once.

    Raises:
        ValueError: they are not, or the digest is not theirs.
    """
    found: dict[str, list[Part]] = {place.name: [] for place in shipment.layout}
    for part in shipment.parts:
        found[part.name].append(part)
    for place in shipment.layout:
        edge = place.start
        for part in sorted(found[place.name], key=lambda part: part.start):
            if part.start != edge:
                raise ValueError(f"byte {edge - place.start} of {place.name} was written not once")
            edge += part.size
        if edge != place.start + place.size:
            raise ValueError(f"of {place.name} only {edge - place.start} of {place.size} bytes were written")
    if total_digest(shipment.parts) != shipment.digest:
        raise ValueError("the digest is not that of the parts")


def read_files(shipment: Shipment) -> memoryview:
    """The bytes of a publication that lies in one file a trainer rank. Raises ValueError where a file is damaged."""
    last = shipment.layout[-1]
    memory = memoryview(bytearray(last.start + last.size))
    for path in dict.fromkeys(part.path for part in shipment.parts):
        try:
            _read(Path(path), memory)
        except SafetensorError as error:
            raise ValueError(f"{Path(path).name} is damaged: {error}") from error
    return memory


def tensor_at(memory: memoryview, place: Place) -> Tensor:
    """The tensor whose bytes lie there."""
    dtype = getattr(torch, place.dtype)
    with warnings.catch_warnings():
        # Memory that others write is mapped read-only, and nothing here writes to weights that are served.
        warnings.simplefilter("ignore", UserWarning)
        flat = torch.frombuffer(memory, dtype=dtype, count=place.size // dtype.itemsize, offset=place.start)
    return flat.view(place.shape)


def _read(path: Path, memory: memoryview) -> None:
    with safe_open(path, framework="pt") as file:
        starts = {name: int(start) for name, start in file.metadata().items()}
        for name, start in starts.items():
            values = file.get_tensor(name).reshape(-1).view(torch.uint8)
            torch.frombuffer(memory, dtype=torch.uint8)[start : start + values.numel()].copy_(values)
