"""What machine this is, and how busy."""

import os
import platform
from pathlib import Path
from typing import Any

import psutil


def cpu_model() -> str:
    """The processor's own name, as the kernel gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def describe() -> dict[str, Any]:
    """The machine, without its name: what a reader needs to judge a number by."""
    return {
        "system": platform.system(),
        "release": platform.release(),
        "architecture": platform.machine(),
        "cpu_model": cpu_model(),
        "cores": usable_cores(),
        "memory_bytes": psutil.virtual_memory().total,
        "python": platform.python_version(),
        "gpus": _gpus(),
    }


def _gpus() -> list[dict[str, Any]]:
    """GPUs by NVML, where its Python binding and the driver are there."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except (ImportError, OSError, RuntimeError):
        return []
    except pynvml.NVMLError:
        return []
    handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
    return [
        {"name": str(pynvml.nvmlDeviceGetName(h)), "memory_bytes": pynvml.nvmlDeviceGetMemoryInfo(h).total}
        for h in handles
    ]


def load() -> list[float]:
    """Load averages over 1, 5 and 15 minutes."""
    return [round(value, 2) for value in os.getloadavg()]
