"""The check that the installed version still has every place that the adapter holds on to."""

import json
import os
import sys
from contextlib import redirect_stdout

from adapters.openrlhf.cpu import table as cpu
from adapters.openrlhf.flags import EVERY_FLAG
from adapters.openrlhf.imports import install
from adapters.openrlhf.parser import flag_drift
from adapters.openrlhf.patch import Patch
from adapters.openrlhf.table import ENGINES, PINNED, WATCHED
from harness.errors import SystemFailure
from harness.probe.hooks import HookPoint, verify_hooks

AGENT = (
    HookPoint("openrlhf.utils.agent:AgentExecutorBase.execute", "tokens", "the plug-in's method", ("sampling_params",)),
    HookPoint(f"{ENGINES}:_load_agent_executor", "tokens", "loads the plug-in", ("agent_func_path",)),
    HookPoint("vllm:AsyncLLMEngine.collective_rpc", "version", "carries a broadcast", ("method", "args")),
    HookPoint("vllm:AsyncLLMEngine.generate", "tokens", "streams tokens as they come", ("prompt", "sampling_params")),
    HookPoint("vllm:AsyncLLMEngine.pause_generation", "version", "comes before a broadcast", ("mode",)),
    HookPoint("vllm:AsyncLLMEngine.resume_generation", "version", "comes after it"),
)
"""What the agent executor, OpenRLHF's own plug-in, relies on."""


class HookDrift(SystemFailure):
    """The installed OpenRLHF is not the one that the adapter holds on to; the message begins with `hook drift`."""


def patches(*, on_cpu: bool) -> tuple[Patch, ...]:
    """All that may be in force on such a machine."""
    return (*PINNED, *WATCHED, *((*cpu.PATCHES, *cpu.FLOAT32) if on_cpu else ()))


def hook_drift() -> list[str]:
    """One message for each flag that is gone, and for each place, patch by patch."""
    on_cpu = "+cpu" in _torch_version()
    if on_cpu:
        from adapters.openrlhf.run import CPU_ENVIRONMENT, STAND_IN

        os.environ.update(CPU_ENVIRONMENT)
        sys.path.append(STAND_IN)
    install()
    points = [point for patch in patches(on_cpu=on_cpu) for point in patch.holds]
    return [*flag_drift(EVERY_FLAG), *verify_hooks([*AGENT, *points])]


def print_drift() -> int:
    """Write the drift messages as a JSON list to standard output; 0 where there is none, else 1."""
    with redirect_stdout(sys.stderr):  # vLLM logs to standard output
        messages = hook_drift()
    json.dump(messages, sys.stdout)
    return 1 if messages else 0


def _torch_version() -> str:
    import torch

    return str(torch.__version__)
