"""Measures the two limits of this machine that headroom is held against: memory bandwidth and matrix rate.

Run as `python -m harness.probe.roofline` in an adapter's environment (it needs torch); prints one JSON object. The
roofline model is Williams, Waterman and Patterson's (CACM 2009): a stage takes at least the larger of bytes over
bandwidth and operations over the matrix rate.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

REPEATS = 7
BUFFER_BYTES = 256 * 1024 * 1024
MATRIX_SIDE = {"cpu": 2048, "cuda": 8192}


def _best_seconds(torch: Any, work: Callable[[], Any], device: str) -> float:
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best


def measure(threads: int, dtype: str = "float32") -> dict[str, Any]:
    """Bandwidth in bytes/s (a read of a buffer larger than any cache) and matrix rate in operations/s (a square
    product in `dtype`), each the best of 7: a limit is what the machine can do, not what it did on average."""
    import torch

    torch.set_num_threads(threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    buffer = torch.ones(BUFFER_BYTES // 4, dtype=torch.float32, device=device)
    side = MATRIX_SIDE[device]
    matrix = torch.randn(side, side, device=device).to(getattr(torch, dtype))
    read = _best_seconds(torch, buffer.sum, device)
    product = _best_seconds(torch, lambda: matrix @ matrix, device)
    return {
        "bandwidth_bytes_per_s": BUFFER_BYTES / read,
        "matrix_flops_per_s": 2 * side**3 / product,
        "device": device,
        "dtype": dtype,
        "threads": threads,
        "method": f"best of {REPEATS}: sum over {BUFFER_BYTES >> 20} MiB; product of {side} x {side} {dtype}",
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(int(sys.argv[1]), sys.argv[2])) + "\n")
