"""Seconds and memory of measuring a whole cell, over the number of sampled tokens."""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.scale_ledger import CELL_ID, TASK, write_scale_ledger

SIZES = (25_000_000, 100_000_000)
CORES = 2
MOST_SECONDS, MOST_BYTES = 60, 2e9


@dataclass(frozen=True)
class Cost:
    """What measuring one ledger took: wall-clock seconds with every import, and the peak resident set in bytes."""

    seconds: float
    peak_bytes: int
    values: int


def measure_here(ledger_dir: str) -> Cost:
    """Every figure and every series of the scale ledger, in this process."""
    import resource

    from harness.contract import read_cell
    from harness.measure.api import MeasureContext, measure_cell, series_cell, view_of

    start = time.perf_counter()
    view = view_of(read_cell(Path(ledger_dir), CELL_ID), MeasureContext(TASK, 3))
    values = measure_cell(view)
    json.dumps(series_cell(view))
    seconds = time.perf_counter() - start
    return Cost(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, len(values))


def tell(ledger_dir: str) -> None:
    """Print what `measure_here` took, as JSON."""
    print(json.dumps(asdict(measure_here(ledger_dir))))


def _in_own_process(ledger: Path) -> Cost:
    """Measured in a process of its own, on `CORES` cores, so that its peak is its own."""
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    code = (
        f"import os; os.sched_setaffinity(0, {cores}); from benchmarks.report_scale import tell; tell({str(ledger)!r})"
    )
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    cost = Cost(**json.loads(done.stdout))
    return Cost(time.perf_counter() - start, cost.peak_bytes, cost.values)


def main() -> None:
    """Print seconds and peak memory over their limits at 100,000,000 tokens, and the exponent of the growth."""
    costs = []
    for tokens in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            cost = _in_own_process(write_scale_ledger(Path(folder), tokens))
        costs.append(cost)
        print(f"{tokens:,} tokens: {cost.seconds:.1f} s, peak {cost.peak_bytes / 1e9:.2f} GB, {cost.values} figures")
    small, large = costs
    growth = math.log(large.seconds / small.seconds) / math.log(SIZES[1] / SIZES[0])
    print(f"seconds over {MOST_SECONDS}: {large.seconds / MOST_SECONDS:.2f}; wanted: at most 1")
    print(f"peak over 2 GB: {large.peak_bytes / MOST_BYTES:.2f}; wanted: at most 1")
    print(f"seconds grow with tokens to the power {growth:.2f}; wanted: about 1")


if __name__ == "__main__":
    main()
