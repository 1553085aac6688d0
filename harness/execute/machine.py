"""What machine this is, and how busy."""

import hashlib
import json
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


MACHINE_ID = Path("/etc/machine-id")
"""Set by the system once, at its installation; a container may have none."""
ID_DIGITS = 8


def machine_id() -> str:
    """Eight hexadecimal digits that are the same for every run on this machine, as far as it can be told apart.

    They are of a SHA-256 over what stays through a reboot: processor, usable cores, memory to the GiB, the names and
    serial numbers of the GPUs that are seen, and the machine-id file. No name can be read out of them. A job that is
    given other cores or GPUs of a node is another machine, since it measures as one.
    """
    facts = [
        platform.machine(),
        cpu_model(),
        usable_cores(),
        round(psutil.virtual_memory().total / 2**30),
        sorted((gpu["name"], gpu["uuid"]) for gpu in _seen_gpus()),
        MACHINE_ID.read_text(encoding="utf-8").strip() if MACHINE_ID.exists() else "",
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:ID_DIGITS]


def describe() -> dict[str, Any]:
    """The machine, without its name: what a number is judged by, and an `id` that tells it from others."""
    return {
        "id": machine_id(),
        "system": platform.system(),
        "release": platform.release(),
        "architecture": platform.machine(),
        "cpu_model": cpu_model(),
        "cores": usable_cores(),
        "memory_bytes": psutil.virtual_memory().total,
        "python": platform.python_version(),
        "gpus": [{key: gpu[key] for key in ("name", "memory_bytes")} for gpu in _seen_gpus()],
    }


def _seen_gpus() -> list[dict[str, Any]]:
    """GPUs by NVML, where its Python binding and the driver are there. Their `uuid` is for no manifest."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except (ImportError, OSError, RuntimeError):
        return []
    except pynvml.NVMLError:
        return []
    handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
    return [
        {
            "name": str(pynvml.nvmlDeviceGetName(h)),
            "memory_bytes": pynvml.nvmlDeviceGetMemoryInfo(h).total,
            "uuid": str(pynvml.nvmlDeviceGetUUID(h)),
        }
        for h in handles
    ]


def load() -> list[float]:
    """Load averages over 1, 5 and 15 minutes."""
    return [round(value, 2) for value in os.getloadavg()]
