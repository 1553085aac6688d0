"""The harness side: what to start, what not to, and how near it comes to the task. Imports no framework."""

import json
from pathlib import Path
from typing import Any

from harness.execute.adapter import Fidelity, Launch
from harness.execute.cell import Cell
from harness.task.kinds import kind_of

ONLY = {
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "micro_batches": 1,
    "lr_schedule": "constant",
    "loss": "token_mean",
    "advantage_std": "group",
    "kl_beta": 0.0,
    "mask_truncated": False,
    "precision": "float32",
    "gradient_checkpointing": False,
}
"""Task settings of which the loop knows one value."""
HARNESS_ALONE = ("name", "warmup_steps", "verifier_timeout_s", "problems", "dataset", "generator")


class PlainDriver:
    """See `harness.execute.adapter.Driver`."""

    def render(self, cell: Cell) -> Launch:
        """One process; the first word stands for the interpreter of the adapter's environment."""
        return Launch(["python", "-m", "plain_loop.inside"], {"HF_HUB_OFFLINE": "1"})

    def skip(self, cell: Cell) -> str | None:
        """Why the loop cannot do what a cell asks, in a line; None where it can."""
        if cell.layout["name"] != "colocated_sync":
            return f"the plain loop has no layout {cell.layout['name']}"
        if kind_of(cell.task["name"]).turns > 1:
            return "the plain loop's completions have one turn"
        wrong = [key for key, value in ONLY.items() if cell.task[key] != value]
        return f"the plain loop knows only {wrong[0]}={ONLY[wrong[0]]}" if wrong else None

    def fidelity(self, cell: Cell, settings_in_force: dict[str, Any]) -> list[Fidelity]:
        """One row a task setting: what was asked, and what the loop's own objects held."""
        return [self._row(key, asked, settings_in_force) for key, asked in cell.task.items()]

    def _row(self, key: str, asked: Any, held: dict[str, Any]) -> Fidelity:
        if key in HARNESS_ALONE:
            return Fidelity(key, asked, asked, "exact", "the harness's own; the loop does not see it")
        if held[key] == asked:
            return Fidelity(key, asked, held[key], "exact")
        return Fidelity(key, asked, held[key], "approximated", "the loop's objects hold another value")

    def native(self, cell_dir: Path) -> list[tuple[int | None, str, float]]:
        """What the loop printed of itself, from every attempt's log."""
        logs = [log.read_text(encoding="utf-8") for log in sorted(cell_dir.glob("log.*.jsonl"))]
        lines = [json.loads(line) for log in logs for line in log.splitlines()]
        return [(line["step"], key, value) for line in lines for key, value in line.items() if key != "step"]


driver = PlainDriver()
