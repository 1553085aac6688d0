"""What no change of a framework can affect, and what voids a verdict where it moved: the machine's other work."""

from collections.abc import Sequence

from harness.compare.results import CellResult


def disturbance(cells: Sequence[CellResult], limit: float) -> str | None:
    """Why what these cells measured is not of them alone, or None.

    Args:
        limit: how many cores other processes may use while a cell runs.
    """
    disturbed = [(cell.foreign_cores, cell.name) for cell in cells if (cell.foreign_cores or 0.0) > limit]
    if not disturbed:
        return None
    most, name = max(disturbed)
    others = f", and more than {limit:g} in {len(disturbed) - 1} other cells" if len(disturbed) > 1 else ""
    return f"other processes used {most:.2g} cores during {name}{others} (limit {limit:g})"
