"""Runs one cell inside verl's own environment: `python -m adapters.verl.inside`, with RLAXES_CELL set.

`--check-hooks` only prints what drifted in the installed version as a JSON list, and exits with 1 if any did.
"""

import time

STARTED = time.perf_counter_ns()

import sys  # noqa: E402  (imports are part of the start-up that STARTED times)

from harness.probe.process import run_process  # noqa: E402


def main() -> int:
    """Run the cell that RLAXES_CELL names; an exception is written to the ledger and raised on."""
    return run_process("adapters.verl", STARTED, "torch and verl")


if __name__ == "__main__":
    sys.exit(main())
