"""Samples the memory of this process by stage: PSS on a CPU, the allocator and NVML on a GPU.

Reading PSS walks the page tables (milliseconds for a process that holds a model), so after a first reading of each
stage there is at most one in `SAMPLE_SECONDS`, given to the stages in turn.
"""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SAMPLE_SECONDS = 1.0
Row = dict[str, Any]


def pss_bytes(pid: int) -> int | None:
    """Proportional set size of a process in bytes (Linux smaps_rollup); None where the kernel does not tell it."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), None)


class MemorySampler:
    """Gives memory rows at the end of a stage, not more often than a run can bear."""

    def __init__(self) -> None:
        self._readings_of: dict[str, int] = {}
        self._last = 0.0
        self._pid = os.getpid()

    def sample_if_due(self, stage: str) -> list[Row]:
        """Rows of the `memory` table for `stage`, or none where it is not its turn."""
        now, taken = time.monotonic(), self._readings_of
        first = stage not in taken
        if not first and (now - self._last < SAMPLE_SECONDS or taken[stage] > min(taken.values())):
            return []
        self._last = now
        taken[stage] = taken.get(stage, 0) + 1
        t = time.perf_counter_ns()
        return [{"t": t, "pid": self._pid, "phase": stage, **reading} for reading in self._readings()]

    def _readings(self) -> Iterator[Row]:
        if (pss := pss_bytes(self._pid)) is not None:
            yield {"component": "process", "source": "pss", "bytes": pss}
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_available():
            yield from _cuda_readings(torch)


def _cuda_readings(torch: Any) -> Iterator[Row]:
    """The allocator's peaks since the last reading, and what the driver says the device holds."""
    for device in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(device)
        peak = {
            "cuda_allocated": torch.cuda.max_memory_allocated(device),
            "cuda_reserved": torch.cuda.max_memory_reserved(device),
            "nvml": total - free,
        }
        torch.cuda.reset_peak_memory_stats(device)
        for source, size in peak.items():
            yield {"component": f"device:{device}", "source": source, "bytes": size}
