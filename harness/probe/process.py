"""The process of one cell, whichever the adapter: it runs the cell that RLAXES_CELL names and writes down how it ended.

An adapter's package has `run.run_cell(probe, started, stack)`, which gives back the run in short, and
`hooks.hook_drift()`, one message for each place of an installed library that is gone. Neither is imported before the
probe can write down what goes wrong.
"""

import importlib
import json
import sys
from contextlib import ExitStack, redirect_stdout
from pathlib import Path

from harness.errors import RlaxesError, UserError
from harness.probe.hooks import HookDrift
from harness.probe.probe import Probe

CHECK_HOOKS = "--check-hooks"
MOST_WORDS = 2000
"""Of an exception: Ray repeats whole tracebacks of other processes in its own."""


def run_process(package: str, started: int, importing: str) -> int:
    """Run the cell; an exception is written to the ledger and raised on.

    With `--check-hooks` it runs nothing: it prints what drifted in the installed libraries as a JSON list.

    Args:
        package: the adapter's, `adapters.trl`.
        started: when the process began, `time.perf_counter_ns()`: imports are part of the start-up.
        importing: what it imports first, for the progress line.

    Returns:
        the exit code: 0, or 1 where hooks drifted.
    """
    if CHECK_HOOKS in sys.argv[1:]:
        return _print_drift(package)
    probe = Probe.from_environment()
    probe.progress(0, probe.cell["task"]["steps"], f"importing {importing}")
    try:
        run_cell = importlib.import_module(f"{package}.run").run_cell
        with ExitStack() as stack:
            result = run_cell(probe, started, stack)
    except BaseException as error:
        probe.fault(*judge(error), f"{package}.inside", f"{type(error).__name__}: {error}"[:MOST_WORDS])
        probe.flush()
        raise
    probe.close()
    Path(probe.cell["directory"], "result.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    return 0


def _print_drift(package: str) -> int:
    with redirect_stdout(sys.stderr):  # libraries log to standard output while they are imported
        messages = importlib.import_module(f"{package}.hooks").hook_drift()
    sys.stdout.write("\n" + json.dumps(messages) + "\n")  # what is not Python's may have begun a line
    return 1 if messages else 0


def judge(error: BaseException) -> tuple[str, str]:
    """The kind and the cause of the fault that an exception is. Drift is told by its words too: it may be of another
    process, its exception wrapped in one of the framework's."""
    if isinstance(error, MemoryError) or "OutOfMemoryError" in type(error).__name__:
        return "out_of_memory", "system"
    if isinstance(error, HookDrift) or "hook drift" in str(error):
        return "hook_drift", "harness"
    if isinstance(error, UserError):
        return "settings", "harness"
    return ("system_failure" if isinstance(error, RlaxesError) else "exception"), "system"
