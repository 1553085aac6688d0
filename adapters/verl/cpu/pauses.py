"""Lets verl pause the vLLM at hand; imported by `adapters.verl.cpu.plugin`.

verl 0.9.1 is written to vLLM 0.24, whose `AsyncLLM.pause_generation` takes `wait_for_inflight_requests`. The CPU build
that is here is newer, and takes a `mode` in its place. A GPU run has the vLLM that verl asks for, and needs none of it.
"""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from adapters.verl.imports import after_import
from harness.probe.hooks import HookPoint

HOOK = HookPoint(
    "vllm.v1.engine.async_llm:AsyncLLM.pause_generation",
    "weight_sync",
    "aborts what is under way before weights are handed over",
    ("mode", "clear_cache"),
)


def pausing(pause: Callable[..., Any]) -> Callable[..., Any]:
    """vLLM's method, told in its own words what verl asks of it in older ones."""

    @functools.wraps(pause)
    async def paused(self: Any, *, wait_for_inflight_requests: bool | None = None, **named: Any) -> None:
        if wait_for_inflight_requests is not None:
            named["mode"] = "wait" if wait_for_inflight_requests else "abort"
        await pause(self, **named)

    return paused


def _replace(module: ModuleType) -> None:
    module.AsyncLLM.pause_generation = pausing(module.AsyncLLM.pause_generation)


after_import("vllm.v1.engine.async_llm", _replace)
