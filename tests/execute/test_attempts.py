"""What an attempt leaves behind outside its own folder: nothing, however it ended."""

import sys
from pathlib import Path
from typing import Any

import pytest

from harness.contract import LedgerWriter
from harness.execute.attempts import Attempts
from harness.execute.cell import Cell
from harness.execute.launch import Limits
from harness.probe.scratch import scratch_folder

DIES = "import os, pathlib, signal, sys; pathlib.Path(sys.argv[1]).mkdir(); os.kill(os.getpid(), signal.SIGKILL)"


@pytest.mark.parametrize("restarts", [0, 1])
def test_the_folder_for_sockets_goes_with_the_attempt(tmp_path: Path, restarts: int) -> None:
    folder = scratch_folder(tmp_path)
    fields: dict[str, Any] = dict.fromkeys(Cell.__annotations__, "x")
    fields |= {"directory": str(tmp_path), "attempt": 0, "repeat": 0, "seed": 1, "observer": False}
    cell = Cell(**fields | {"fault": {"name": "check", "restarts": restarts}})
    argv = [sys.executable, "-c", DIES, str(folder)]
    with LedgerWriter(tmp_path / "streams", "harness", "x") as writer:
        ended = Attempts(cell, argv, {}, Limits(60, 2**33), lambda: None).run(writer)
    assert [attempt.outcome.returncode for attempt in ended] == [-9] * (1 + restarts)
    assert not folder.exists()
