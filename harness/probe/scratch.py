"""A cell's folder for what must have a short path: sockets. Standard library only."""

import hashlib
import tempfile
from pathlib import Path

PREFIX = "rlx-"


def scratch_folder(directory: Path | str) -> Path:
    """The folder of the cell that lives in `directory`. A socket's path has 107 characters at most, so it is not below
    that; it is named by it, so that an attempt finds what one that was killed left. Whoever uses it clears it first;
    the harness removes it when an attempt has ended, however it ended."""
    name = hashlib.sha256(str(directory).encode()).hexdigest()[:8]
    return Path(tempfile.gettempdir(), f"{PREFIX}{name}")
