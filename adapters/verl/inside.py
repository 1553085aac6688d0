"""Runs one cell inside verl's own environment: `python -m adapters.verl.inside`, with RLAXES_CELL set.

`--check-hooks` only prints what drifted in the installed version as a JSON list, and exits with 1 if any did.
"""

import time

STARTED = time.perf_counter_ns()

import json  # noqa: E402  (imports are part of the start-up that STARTED times)
import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

from harness.probe import Probe  # noqa: E402


def main() -> int:
    """Run the cell that RLAXES_CELL names; an exception is written to the ledger and raised on."""
    if "--check-hooks" in sys.argv[1:]:
        from adapters.verl.hooks import print_drift

        return print_drift()
    probe = Probe.from_environment()
    try:
        from adapters.verl.run import run_cell

        result = run_cell(probe, STARTED)
    except BaseException as error:
        _record(probe, error)
        raise
    probe.close()
    Path(probe.cell["directory"], "result.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    return 0


def _record(probe: Probe, error: BaseException) -> None:
    """Write the fault and everything buffered; the traceback follows on standard error."""
    kind, cause = _judge(error)
    probe.fault(kind, cause, "adapters.verl.inside", f"{type(error).__name__}: {error}"[:2000])
    probe.flush()


def _judge(error: Any) -> tuple[str, str]:
    if isinstance(error, MemoryError) or "OutOfMemoryError" in type(error).__name__:
        return "out_of_memory", "system"
    if "hook drift" in str(error):
        return "hook_drift", "harness"
    return "exception", "system"


if __name__ == "__main__":
    sys.exit(main())
