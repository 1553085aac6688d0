"""AdamW and its state: all that training needs to go on bit for bit, as whole tensors by name."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from adapters.reference.ranks import put, whole
from adapters.reference.settings import Settings

MOMENTS = ("exp_avg", "exp_avg_sq")


def adamw(parameters: list[Any], settings: Settings) -> torch.optim.AdamW:
    """The optimizer that the settings ask for."""
    asked = settings.optimizer
    return torch.optim.AdamW(
        parameters,
        lr=asked.learning_rate,
        betas=(asked.adam_beta1, asked.adam_beta2),
        eps=asked.adam_eps,
        weight_decay=asked.weight_decay,
        fused=True,
    )


def full_state(
    named: Mapping[str, Any], optimizer: torch.optim.AdamW, version: int, into: Mapping[str, Tensor] | None = None
) -> dict[str, Tensor]:
    """Copies on the CPU: `parameter.<name>`, `exp_avg.<name>`, `exp_avg_sq.<name>` of each trained tensor, and two
    int64 scalars: `version`, the steps applied to the weights, and `adam_step`, those that the moments have seen.
    Before the first there are no moments. Collective: all ranks must ask.

    Args:
        into: an earlier full state that nobody needs any more: its memory is used again.
    """
    room = into or {}
    state = {name: _copy(tensor, room.get(name)) for name, tensor in _kept(named, optimizer)}
    steps = max((int(held["step"]) for tensor in named.values() if (held := optimizer.state.get(tensor))), default=0)
    return state | {"version": torch.tensor(version), "adam_step": torch.tensor(steps)}


def load_full_state(
    state: Mapping[str, Tensor], named: Mapping[str, Any], optimizer: torch.optim.AdamW, device: str
) -> int:
    """Put a `full_state` back, on any number of ranks; returns its version. Where it has no moments, Adam starts anew.

    Raises:
        KeyError: a trained tensor is not in it.
    """
    optimizer.state.clear()
    for name, tensor in named.items():
        put(state[f"parameter.{name}"], tensor)
        if f"{MOMENTS[0]}.{name}" in state:
            moments = {moment: torch.zeros_like(tensor) for moment in MOMENTS}
            for moment, values in moments.items():
                put(state[f"{moment}.{name}"], values)
            # Fused AdamW counts in a float32 tensor beside the parameter.
            step = state["adam_step"].to(device, torch.float32, copy=True)
            optimizer.state[tensor] = {"step": step, **moments}
    return int(state["version"])


def _kept(named: Mapping[str, Any], optimizer: torch.optim.AdamW) -> Iterator[tuple[str, Tensor]]:
    yield from ((f"parameter.{name}", tensor) for name, tensor in named.items())
    for name, tensor in named.items():
        if held := optimizer.state.get(tensor):
            yield from ((f"{moment}.{name}", held[moment]) for moment in MOMENTS)


def _copy(tensor: Tensor, room: Tensor | None) -> Tensor:
    source = whole(tensor.detach())
    # Into memory that was never touched a copy takes five times as long: the kernel makes each page first.
    return source.to("cpu", copy=True) if room is None else room.copy_(source)
