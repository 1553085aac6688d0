"""The harness side of the OpenRLHF adapter; imports no framework."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from adapters.openrlhf.fidelity import fidelity_rows
from adapters.openrlhf.native import native_figures
from adapters.openrlhf.shape import misfit
from harness.execute.adapter import Fidelity, Launch
from harness.execute.cell import Cell


class OpenRlhfDriver:
    """See `harness.execute.adapter.Driver`."""

    def render(self, cell: Cell) -> Launch:
        """The main process, which starts Ray and in it OpenRLHF's own command line."""
        return Launch(["python", "-m", "adapters.openrlhf.inside"], {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"})

    def skip(self, cell: Cell) -> str | None:
        """Layouts and tasks that OpenRLHF does not have, or that this machine cannot hold."""
        return misfit(asdict(cell))

    def fidelity(self, cell: Cell, settings_in_force: dict[str, Any]) -> list[Fidelity]:
        """One row for each task setting."""
        return fidelity_rows(asdict(cell), settings_in_force)

    def native(self, cell_dir: Path) -> list[tuple[int | None, str, float]]:
        """What OpenRLHF logged of itself."""
        return native_figures(cell_dir)


driver = OpenRlhfDriver()
