"""Runs one cell inside OpenRLHF's own environment: `python -m adapters.openrlhf.inside`, with RLAXES_CELL set.

`--check-hooks` only prints what drifted in the installed version as a JSON list, and exits with 1 if any did.
"""

import time

STARTED = time.perf_counter_ns()

import json  # noqa: E402  (imports are part of the start-up that STARTED times)
import sys  # noqa: E402
from contextlib import ExitStack  # noqa: E402
from pathlib import Path  # noqa: E402

from harness.errors import RlaxesError  # noqa: E402
from harness.probe import Probe  # noqa: E402


def main() -> int:
    """Run the cell that RLAXES_CELL names; an exception is written to the ledger and raised on."""
    if "--check-hooks" in sys.argv[1:]:
        from adapters.openrlhf.hooks import print_drift

        return print_drift()
    probe = Probe.from_environment()
    try:
        from adapters.openrlhf.run import run_cell

        with ExitStack() as stack:
            result = run_cell(probe, STARTED, stack)
    except BaseException as error:
        probe.fault(*_judge(error), "adapters.openrlhf.inside", f"{type(error).__name__}: {error}")
        probe.flush()
        raise
    probe.close()
    Path(probe.cell["directory"], "result.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    return 0


def _judge(error: BaseException) -> tuple[str, str]:
    """The kind and the cause of a fault."""
    if isinstance(error, MemoryError):
        return "out_of_memory", "system"
    if "hook drift" in str(error):
        return "hook_drift", "harness"
    return ("system_failure" if isinstance(error, RlaxesError) else "exception"), "system"


if __name__ == "__main__":
    sys.exit(main())
