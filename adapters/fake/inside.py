"""The process of a fake cell: `python -m adapters.fake.inside`."""

import sys
import time

from harness.probe.process import run_process

if __name__ == "__main__":
    sys.exit(run_process("adapters.fake", time.perf_counter_ns(), "nothing"))
