"""The cell, in a process that Ray or vLLM started. Standard library only."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from harness.probe.probe import CELL_VARIABLE


@cache
def this_cell() -> dict[str, Any]:
    """The content of `cell.json`."""
    found: dict[str, Any] = json.loads(Path(os.environ[CELL_VARIABLE]).read_text(encoding="utf-8"))
    return found
