"""The framework side, in the adapter's environment: `python -m plain_loop.inside` runs the cell of `RLAXES_CELL`.

`--check-hooks` prints, as a JSON list, what the loop holds on to in the installed libraries and no longer finds.
"""

import time

STARTED = time.perf_counter_ns()

import sys  # noqa: E402  (imports are part of the start-up that STARTED times)

from harness.probe.process import run_process  # noqa: E402

if __name__ == "__main__":
    sys.exit(run_process("plain_loop", STARTED, "torch"))
