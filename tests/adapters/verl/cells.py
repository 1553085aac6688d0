"""Cells of the verl adapter without a GPU, from the files of `conf/`, as `cell.json` holds them."""

from pathlib import Path
from typing import Any

from tests.adapters.verl.gpu.cells import gpu_cell


def cpu_cell(directory: Path = Path("/cell"), bundle: Path = Path("/bundle"), **changed: Any) -> dict[str, Any]:
    """A cell of the task `arithmetic`; `task` and `options` change settings of the task and of the adapter, any other
    word a field of the cell."""
    task, options = changed.pop("task", {}), changed.pop("options", {})
    cell = gpu_cell("colocated_sync", "cpu", task, **options)
    return cell | {"directory": str(directory), "bundle": str(bundle), "run_id": "run", **changed}
