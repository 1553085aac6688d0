"""The check that the installed version still has every place that the adapter holds on to."""

import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from adapters.openrlhf.cpu import table as cpu
from adapters.openrlhf.flags import EVERY_FLAG
from adapters.openrlhf.imports import VARIABLE, in_force, install
from adapters.openrlhf.parser import flag_drift
from adapters.openrlhf.patch import Patch
from adapters.openrlhf.settings import computes_in_float32
from adapters.openrlhf.shape import on_gpu
from adapters.openrlhf.table import ENGINES, PINNED, WATCHED
from harness.probe.hooks import HookPoint, require_hooks, verify_hooks

AGENT = (
    HookPoint("openrlhf.utils.agent:AgentExecutorBase.execute", "tokens", "the plug-in's method", ("sampling_params",)),
    HookPoint(f"{ENGINES}:_load_agent_executor", "tokens", "loads the plug-in", ("agent_func_path",)),
    HookPoint("vllm:AsyncLLMEngine.collective_rpc", "version", "carries a broadcast", ("method", "args")),
    HookPoint("vllm:AsyncLLMEngine.generate", "tokens", "streams tokens as they come", ("prompt", "sampling_params")),
    HookPoint("vllm:AsyncLLMEngine.pause_generation", "version", "comes before a broadcast", ("mode",)),
    HookPoint("vllm:AsyncLLMEngine.resume_generation", "version", "comes after it"),
)
"""What the agent executor, OpenRLHF's own plug-in, relies on."""
RAY = (
    HookPoint(
        "ray._private.parameter:RayParams.__init__",
        "startup",
        "is told the ports of Ray's agents, which it has no public argument for",
        ("metrics_agent_port", "runtime_env_agent_port", "dashboard_agent_listen_port"),
    ),
    HookPoint("ray._private.services:get_node", "startup", "is asked for longer whether the raylet is there"),
)


def patches_of(cell: Mapping[str, Any], *, watched: bool) -> tuple[Patch, ...]:
    """Those that are in force in a cell; a bare twin is not `watched`."""
    found = (*PINNED, *(WATCHED if watched else ()))
    if not on_gpu(cell):
        found += cpu.PATCHES
    if computes_in_float32(cell):
        found += cpu.FLOAT32
    return found


def hook_drift() -> list[str]:
    """One message for each place that is gone, patch by patch."""
    found: tuple[Patch, ...] = (*PINNED, *WATCHED)
    if "+cpu" in _torch_version():
        from adapters.openrlhf.run import CPU_ENVIRONMENT, STAND_IN

        found += (*cpu.PATCHES, *cpu.FLOAT32)
        os.environ.update(CPU_ENVIRONMENT)
        sys.path.append(STAND_IN)
    os.environ[VARIABLE] = in_force(found)
    install()
    return drift_of(found)


def check_hooks(patches: Iterable[Patch]) -> None:
    """Raise HookDrift, naming every place of these patches that the installed version no longer has."""
    require_hooks(drift_of(patches))


def drift_of(patches: Iterable[Patch]) -> list[str]:
    """One message for each place that these patches, the plug-in and the command line hold on to and that is gone."""
    points = [point for patch in patches for point in patch.holds]
    return [*flag_drift(EVERY_FLAG), *verify_hooks([*AGENT, *RAY, *points])]


def _torch_version() -> str:
    import torch

    return str(torch.__version__)
