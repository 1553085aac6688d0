"""The trainer's part of a checkpoint: parameters, AdamW's moments and steps, and random states [12.5.1].

Tensors are a safetensors file, the rest is JSON; nothing is pickled.
"""

import base64
import json
import random
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import torch
import xxhash
from safetensors.torch import load_file
from torch import Tensor

from adapters.reference.checkpoint import TrainerPart, Written, digest_of, write_file, write_json
from adapters.reference.trainer import Trainer
from harness.errors import SystemFailure
from harness.probe.faults import Faults

TENSORS = "trainer.safetensors"
PARAMETER, VERSION = "parameter.", "version"
DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.int64: "I64",
    torch.uint8: "U8",
}


class TrainerState:
    """Saves and loads what one rank of the trainer holds. All ranks are asked, since the parts of a sharded tensor come
    together for it; the first one writes the tensors, each its random state."""

    def __init__(self, trainer: Trainer, faults: Faults, rank: int = 0) -> None:
        self._trainer, self._faults, self._rank = trainer, faults, rank
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._writing: Future[TrainerPart] | None = None
        self._copied: dict[str, Tensor] = {}

    def save(self, folder: str, background: bool) -> None:
        """Write this rank's files into a folder; in the background the state is copied before this returns, and the
        trainer may go on. One at a time: the copy of the one before is written over, once its files are written.

        Raises:
            OSError: the disk refuses them, and they were not to be written in the background.
        """
        if self._writing is not None:
            wait([self._writing])
        self._copied, draws = self._trainer.full_state(self._copied), random_state()
        self._writing = self._writer.submit(self._write, Path(folder), self._copied, draws)
        if not background:
            self._writing.result()

    def saved(self) -> TrainerPart | None:
        """What the last `save` wrote, once it is on disk; None until then. Raises OSError if the disk refused it."""
        return self._writing.result() if self._writing is not None and self._writing.done() else None

    def committed(self) -> None:
        """The checkpoint that this is a part of is whole."""
        self._faults.at("trainer.after_checkpoint")

    def load(self, folder: str, which: str) -> TrainerPart:
        """Take the state in a folder over: all of it where `which` is `full`; the parameters and their version alone
        where it is `weights`, beside an optimizer and random states as new. Returns what is then held.

        Raises:
            SystemFailure: the tensors are not those of this trainer.
        """
        state = load_file(Path(folder, TENSORS))
        if which == "weights":
            state = {name: tensor for name, tensor in state.items() if _is_weight(name) or name == VERSION}
        else:
            set_random_state(json.loads(Path(folder, self._draws_name).read_text(encoding="utf-8")))
        try:
            self._trainer.load_full_state(state)
        except KeyError as error:
            raise SystemFailure(f"{folder} has no tensor {error}") from error
        return TrainerPart({}, digests(self._trainer.full_state(), random_state()), self._trainer.version)

    @property
    def _draws_name(self) -> str:
        return f"random-{self._rank}.json"

    def _write(self, folder: Path, state: Mapping[str, Tensor], draws: Mapping[str, Any]) -> TrainerPart:
        files: dict[str, Written] = {}
        if self._rank == 0:
            files[TENSORS] = write_file(folder / TENSORS, safetensors_pieces(state), self._faults)
        files[self._draws_name] = write_json(folder / self._draws_name, draws, self._faults)
        return TrainerPart(files, digests(state, draws), int(state[VERSION]))


def digests(state: Mapping[str, Tensor], draws: Mapping[str, Any]) -> dict[str, str]:
    """The digest of each item that the trainer holds."""
    weights = {name: tensor for name, tensor in state.items() if _is_weight(name)}
    moments = {name: tensor for name, tensor in state.items() if not _is_weight(name) and name != VERSION}
    return {"parameters": _digest(weights), "optimizer": _digest(moments), "rng": digest_of(draws)}


def safetensors_pieces(tensors: Mapping[str, Tensor]) -> Iterator[Any]:
    """A safetensors file in pieces, none of which copies a tensor. The library's own writer hands a file over only when
    it is done: a fault could not be put at a byte, and its hash would take another reading."""
    header: dict[str, Any] = {}
    place = 0
    for name, tensor in tensors.items():
        end = place + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [place, end]}
        place = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little")
    yield text
    yield from (_bytes(tensor) for tensor in tensors.values())


def random_state() -> dict[str, Any]:
    """The states of this process's generators: Python's, torch's, and its accelerator's where there is one."""
    version, numbers, gauss = random.getstate()
    gpu = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {
        "python": [version, list(numbers), gauss],
        "torch": _text(torch.get_rng_state()),
        "cuda": [_text(state) for state in gpu],
    }


def set_random_state(state: Mapping[str, Any]) -> None:
    """Put the generators where they were."""
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    torch.set_rng_state(_tensor(state["torch"]))
    if state["cuda"]:
        torch.cuda.set_rng_state_all([_tensor(text) for text in state["cuda"]])


def _is_weight(name: str) -> bool:
    return name.startswith(PARAMETER)


def _digest(tensors: Mapping[str, Tensor]) -> str:
    total = xxhash.xxh3_128()
    for name, tensor in sorted(tensors.items()):
        total.update(f"{name} {DTYPES[tensor.dtype]} {list(tensor.shape)}".encode())
        total.update(_bytes(tensor))
    return f"xxh3_128:{total.hexdigest()}"


def _bytes(tensor: Tensor) -> Any:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy()


def _text(state: Tensor) -> str:
    return base64.b64encode(state.numpy().tobytes()).decode()


def _tensor(text: str) -> Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)
