"""The trainer's ranks: one module sharded over processes by FSDP2, each with its share of every minibatch.

Sums, not means, are taken over ranks: each term's weight in the loss is that of the whole minibatch already.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MethodType
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor

from adapters.reference.policy import SELECTED, selected_logits


class Ranks(Protocol):
    """One rank among `size`; all make the same calls in the same order."""

    rank: int
    size: int

    def shard(self, model: Any) -> None:
        """Leave this rank its slices of the module, which must be equal on all; it is changed in place."""
        ...

    def total(self, values: Sequence[float]) -> list[float]:
        """The sums over ranks, in float64; as many values on each."""
        ...


class Alone:
    """The only rank."""

    rank, size = 0, 1

    def shard(self, model: Any) -> None:
        """See `Ranks.shard`."""

    def total(self, values: Sequence[float]) -> list[float]:
        """See `Ranks.total`."""
        return list(values)


class RankGroup:
    """Ranks in processes of their own, over gloo on CPUs and nccl on GPUs. They meet through a file that all of them
    can reach, and that no other group has met through."""

    def __init__(self, rank: int, size: int, meeting: Path, device: str) -> None:
        """Waits for all the others. On GPUs, rank r takes device r of those that its process sees (modulo their
        number)."""
        self.rank, self.size, self._device = rank, size, device
        backend = "gloo"
        if device != "cpu":
            backend = "nccl"
            torch.accelerator.set_device_index(rank % torch.accelerator.device_count())
        dist.init_process_group(backend, store=dist.FileStore(str(meeting), size), rank=rank, world_size=size)
        self._mesh = init_device_mesh(device, (size,))

    def shard(self, model: Any) -> None:
        """See `Ranks.shard`. Layers are gathered one at a time, embeddings and output layer with the whole module."""
        setattr(model, SELECTED, MethodType(selected_logits, model))
        blocks = [module for module in model.modules() if type(module).__name__ in (model._no_split_modules or ())]
        for module in (*blocks, model):
            sharded: Any = fully_shard(module, mesh=self._mesh)
            sharded.set_gradient_divide_factor(1.0)
            # gloo has no scaled sum, which torch would take for a factor of its own.
            sharded.set_force_sum_reduction_for_comms(True)
        register_fsdp_forward_method(model, SELECTED)

    def total(self, values: Sequence[float]) -> list[float]:
        """See `Ranks.total`."""
        tensor = torch.tensor(values, dtype=torch.float64, device=self._device)
        if len(tensor):
            dist.all_reduce(tensor)
        summed: list[float] = tensor.tolist()
        return summed

    def close(self) -> None:
        """Leave the group."""
        dist.destroy_process_group()


@dataclass(frozen=True)
class Shard:
    """What one rank holds of a tensor: `local` are its rows from `first` on; `shape` is the whole one's."""

    local: Tensor
    first: int
    shape: tuple[int, ...]


def shard_of(tensor: Tensor) -> Shard:
    """This rank's rows of a tensor that is sharded over its first dimension, as `torch.chunk` cuts it; all of them
    where it is not sharded."""
    if not isinstance(tensor, DTensor):
        return Shard(tensor, 0, tuple(tensor.shape))
    rows = -(-tensor.shape[0] // tensor.device_mesh.size())
    first = min(tensor.device_mesh.get_local_rank() * rows, tensor.shape[0])
    return Shard(tensor.to_local(), first, tuple(tensor.shape))


def whole(tensor: Tensor) -> Tensor:
    """The tensor itself, or gathered from all ranks, which must all ask for it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def put(values: Tensor, into: Tensor) -> None:
    """Copy a whole tensor's values into `into`, of which this rank may hold some rows only."""
    own = shard_of(into)
    with torch.no_grad():
        own.local.copy_(values[own.first : own.first + len(own.local)] if own.local.dim() else values)
