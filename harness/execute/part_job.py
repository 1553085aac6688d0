"""What runs on the machine that a launcher chose: one part of a plan, into the run folder that all parts share."""

import os
import pkgutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from harness.errors import UserError
from harness.execute.out_of_memory import Deaths
from harness.execute.parts import Part
from harness.execute.run_folder import PartFolder
from harness.execute.session import NullPlan, work


def run_part(folder: str, part: dict[str, Any], keys: list[str], judge: str | None, redo: bool) -> None:
    """Run what has not ended of a part. The same call goes on where an earlier one was cut.

    Args:
        folder: the run, the same path on every machine.
        part: `Part.as_data`.
        keys: those of its cells, as they were planned where the run was started.
        judge: who judges its A/A test, as `module:function`; None where there is none.
        redo: start again too what is known to have run out of memory.

    Raises:
        UserError: another job works on this part, or the rlaxes of this machine is another.
        CannotTell: the A/A test says that this machine could not tell a difference now.
    """
    planned = Part.from_data(part)
    cells = planned.cells
    if [cell.key for cell in cells] != keys:
        raise UserError("the rlaxes, or a lock, on this machine is not the one that the run was planned with")
    null = NullPlan(planned.null_cells, pkgutil.resolve_name(judge)) if judge else None
    run = PartFolder.open(Path(folder), planned.name)
    try:
        with _gone_at_once():
            work(run, cells, Console(stderr=True), null, Deaths() if redo else None)
    finally:
        run.release()


@contextmanager
def _gone_at_once() -> Iterator[None]:
    """Let SIGTERM end this process there and then. A scheduler sends it to all of a job's processes, and submitit lets
    it pass: this one would live to see the cell die of it, and tell that as the cell's own failure."""
    if threading.current_thread() is not threading.main_thread():  # a worker of Ray, which handles signals itself
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
