"""Executes the code cells of a notebook in order, in one namespace, as a kernel would: python run_cells.py NOTEBOOK.

Without a kernel CI needs nothing that rlaxes itself does not. A cell that fails ends the process with its traceback.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any


def run_cells(notebook: Path) -> None:
    """Says how many seconds each cell took."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        began = time.monotonic()
        exec(compile("".join(cell["source"]), f"<cell {cell['id']}>", "exec"), namespace)
        sys.stdout.write(f"{cell['id']}: {time.monotonic() - began:.1f} s\n")
        sys.stdout.flush()


if __name__ == "__main__":
    run_cells(Path(sys.argv[1]))
