"""Hands weights from trainer ranks to rollout workers without NCCL: the checkpoint engine `shared_file` for verl.

Named in `rollout.checkpoint_engine.{backend, custom_backend_module}`, verl's own place for one of one's own. The first
rank writes a safetensors file into a folder that every process sees; each rollout worker maps it into its memory.
Sender and receivers hash what they hold, so that a publication that verl calls done was received as it was sent.
"""

import asyncio
import hashlib
import json
import os
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from verl.checkpoint_engine import CheckpointEngine, CheckpointEngineRegistry
from verl.workers.rollout.utils import ensure_async_iterator

from adapters.verl.asynchronous.publication import BYTES, DIGEST

BACKEND = "shared_file"
POLL_SECONDS = 0.005
MOST_SECONDS = 600.0


class Torn(RuntimeError):
    """A receiver holds other bytes than were sent, or none came."""


@CheckpointEngineRegistry.register(BACKEND)
class SharedFile(CheckpointEngine):
    """One is in each trainer rank and in each rollout worker; see `verl.checkpoint_engine.CheckpointEngine`."""

    def __init__(self, folder: str, bucket_size: int = 0, is_master: bool = False) -> None:
        """`folder` comes from `checkpoint_engine.engine_kwargs.shared_file`. The rest is verl's, and unused: a file has
        no buckets, and `build_topology` says who sends."""
        self._folder, self._number, self._sends = Path(folder), "", False

    def prepare(self) -> dict[str, Any]:
        """Nothing has to be set up before a publication."""
        return {}

    @classmethod
    def build_topology(
        cls, actor_wg_world_size: int, rollout_world_size: int, metadata: list[dict[str, Any]]
    ) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        """Give all workers the number of this publication, and the first trainer rank the sender's part."""
        number = str(time.time_ns())
        trainer: dict[str, list[Any]] = {"number": [number] * actor_wg_world_size}
        trainer["sends"] = [rank == 0 for rank in range(actor_wg_world_size)]
        rollout: dict[str, list[Any]] = {"number": [number] * rollout_world_size}
        rollout["sends"] = [False] * rollout_world_size
        return trainer, rollout

    def init_process_group(self, number: str, sends: bool) -> None:
        """Take this worker's part of `build_topology`."""
        self._number, self._sends = number, sends
        self._folder.mkdir(parents=True, exist_ok=True)

    def finalize(self) -> None:
        """All have received: the sender's file goes."""
        if self._sends:
            self._path.unlink(missing_ok=True)

    async def send_weights(
        self, weights: Iterable[tuple[str, torch.Tensor]], global_steps: int | None = None
    ) -> dict[str, Any]:
        """Write all tensors at once; every rank iterates, since gathering a sharded one takes all of them.

        Returns:
            on the sending rank, what was sent: `BYTES` and `DIGEST`.
        """
        tensors: dict[str, torch.Tensor] = {}
        places: set[int] = set()
        async for name, weight in ensure_async_iterator(weights):
            if self._sends:
                tensors[name] = _apart(weight.detach().to("cpu"), places)
        if not self._sends:
            return {}
        digest, size = _digest(tensors.items()), sum(tensor.nbytes for tensor in tensors.values())
        partial = self._path.with_suffix(".partial")
        save_file(tensors, str(partial), metadata={"digest": digest, "names": json.dumps(list(tensors))})
        os.replace(partial, self._path)
        return {BYTES: size, DIGEST: digest}

    async def receive_weights(self, global_steps: int | None = None) -> AsyncIterator[tuple[str, torch.Tensor]]:
        """Yield the tensors in the order in which they were sent.

        Raises:
            Torn: no file came in `MOST_SECONDS`, or its tensors are not those that were sent.
        """
        deadline = time.monotonic() + MOST_SECONDS
        while not self._path.exists():
            if time.monotonic() > deadline:
                raise Torn(f"no weights came in {MOST_SECONDS:.0f} s")
            await asyncio.sleep(POLL_SECONDS)
        with safe_open(str(self._path), framework="pt", device="cpu") as file:
            said = file.metadata()
            tensors = [(name, file.get_tensor(name)) for name in json.loads(said["names"])]
        if _digest(tensors) != said["digest"]:
            raise Torn("the weights that came are not those that were sent")
        for pair in tensors:
            yield pair

    @property
    def _path(self) -> Path:
        return self._folder / f"{self._number}.safetensors"


def _apart(tensor: torch.Tensor, places: set[int]) -> torch.Tensor:
    """The tensor in memory of its own: tied weights come twice over one storage, which safetensors refuses."""
    dense = tensor.contiguous()
    if dense.data_ptr() in places:
        return dense.clone()
    places.add(dense.data_ptr())
    return dense


def _digest(tensors: Iterable[tuple[str, torch.Tensor]]) -> str:
    """BLAKE2b over names, types and bytes, in order."""
    state = hashlib.blake2b(digest_size=16)
    for name, tensor in tensors:
        state.update(f"{name}:{tensor.dtype}:{tuple(tensor.shape)}".encode())
        state.update(tensor.contiguous().view(-1).view(torch.uint8).numpy().data)
    return state.hexdigest()
