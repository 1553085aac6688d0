"""What no change of a framework can affect, and what voids a verdict where it moved: the machine's other work."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.compare.gates import FOREIGN_LIMIT
from harness.compare.results import CellResult


def foreign_limit(manifest: Mapping[str, Any]) -> float:
    """How many cores a run says that other processes may use; the stated limit where it says nothing."""
    configs = (config["resolved"] for config in (manifest.get("configs") or {}).values())
    said = [config["null_test"]["max_foreign"] for config in configs if "max_foreign" in config.get("null_test", {})]
    return float(said[0]) if said else FOREIGN_LIMIT


def disturbance(cells: Sequence[CellResult], limit: float) -> str | None:
    """Why what these cells measured is not of them alone, or None.

    Args:
        limit: how many cores other processes may use while a cell runs.
    """
    disturbed = [(cell.foreign_cores, cell.name) for cell in cells if (cell.foreign_cores or 0.0) > limit]
    if not disturbed:
        return None
    most, name = max(disturbed)
    more = f", the worst of {len(disturbed)} cells" if len(disturbed) > 1 else ""
    return f"other processes used {most:.2g} cores during {name}{more} (limit {limit:g})"
