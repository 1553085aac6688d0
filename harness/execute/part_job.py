"""What runs on the machine that a launcher chose: one part of a plan, into the run folder that all parts share."""

from pathlib import Path
from typing import Any

from rich.console import Console

from harness.errors import UserError
from harness.execute.parts import Part
from harness.execute.run_folder import PartFolder
from harness.execute.session import work


def run_part(folder: str, part: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    """Run what has not ended of a part. The same call goes on where an earlier one was cut.

    Args:
        folder: the run, the same path on every machine.
        part: `Part.as_data`.
        keys: those of its cells, as they were planned where the run was started.

    Returns:
        The part's manifest.

    Raises:
        UserError: another job works on this part, or the rlaxes of this machine is another.
    """
    planned = Part.from_data(part)
    cells = planned.cells()
    if [cell.key for cell in cells] != keys:
        raise UserError("the rlaxes, or a lock, on this machine is not the one that the run was planned with")
    run = PartFolder.open(Path(folder), planned.name)
    try:
        work(run, cells, Console(stderr=True))
    finally:
        run.release()
    return run.manifest
