"""Keeps a copy of the weights where verl means to keep one; imported by `adapters.verl.cpu.plugin`.

`verl.utils.fsdp_utils.fsdp2_sharded_save_to_cpu` moves each shard to the CPU. A shard that lies there already is not
copied by that: what is kept goes on changing, and the old policy, whose log-probs verl recomputes from it, is the new
one. There is no plug-in point; the function is replaced once its module is imported.
"""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from adapters.verl.imports import after_import
from harness.probe.hooks import HookPoint

HOOK = HookPoint(
    "verl.utils.fsdp_utils:fsdp2_sharded_save_to_cpu",
    "logprob_recompute",
    "keeps copies of the shards, not the shards themselves",
    ("model",),
)


def copying(save: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """verl's function, whose tensors are then copied."""

    @functools.wraps(save)
    def saved(model: Any) -> Any:
        shards, layout = save(model)
        return {name: (tensor.clone(), spec) for name, (tensor, spec) in shards.items()}, layout

    return saved


def _replace(module: ModuleType) -> None:
    module.fsdp2_sharded_save_to_cpu = copying(module.fsdp2_sharded_save_to_cpu)  # type: ignore[attr-defined]


after_import("verl.utils.fsdp_utils", _replace)
