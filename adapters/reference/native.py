"""The loop prints no figures of its own: what it measures is the ledger."""

from pathlib import Path


def native_figures(cell_dir: Path) -> list[tuple[int | None, str, float]]:  # noqa: ARG001 (the driver's protocol)
    """No figures: there is nothing to hold the ledger's against."""
    return []
