"""The harness side of the fake adapter."""

from pathlib import Path
from typing import Any

from adapters.fake.truth import Truth
from harness.errors import UserError
from harness.execute.adapter import Fidelity, Launch
from harness.execute.cell import Cell
from harness.task.kinds import kind_of

MODES = ("ok", "crash", "hang", "oom", "slow")


class FakeDriver:
    """Renders one command; everything it is told it does exactly."""

    def render(self, cell: Cell) -> Launch:
        """The command of a cell.

        Raises:
            UserError: the mode is none of `MODES`.
        """
        mode = cell.adapter_options["mode"]
        if mode not in MODES:
            raise UserError(f"adapter.mode={mode}: it has to be one of {', '.join(MODES)}")
        return Launch(["python", "-m", "adapters.fake.inside"])

    def skip(self, cell: Cell) -> str | None:
        """It runs in one layout, and its completions have one turn."""
        layout = cell.layout["name"]
        if kind_of(cell.task["name"]).turns > 1:
            return f"the fake loop's completions have one turn, those of {cell.task['name']} have several"
        return None if layout == "colocated_sync" else f"the fake loop has no layout {layout}"

    def fidelity(self, cell: Cell, settings_in_force: dict[str, Any]) -> list[Fidelity]:
        """Every setting, as it was told."""
        return [Fidelity(key, value, settings_in_force[key], "exact") for key, value in cell.task.items()]

    def native(self, cell_dir: Path) -> list[tuple[int | None, str, float]]:
        """What a framework might print: for each step the time that it was told to take, and a running token total."""
        cell = Cell.read(cell_dir)
        truth = Truth.of(cell.adapter_options)
        seconds = sum(truth.stage_ms.values()) / 1000
        total = sum(min(length, cell.task["max_tokens"]) for length in truth.lengths)
        steps = range(cell.task["steps"])
        told = [(step, "step_s", seconds) for step in steps]
        return [*told, *((step, "tokens", float(total * (step + 1))) for step in steps), (None, "runtime_s", 60.0)]


driver = FakeDriver()
