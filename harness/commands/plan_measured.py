"""What a run measured, for the formulas of `rlaxes plan`: predicted, measured, and the rest that is not explained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from harness.commands.plan_words import Answer
from harness.errors import UserError
from harness.execute.run_folder import find_run
from harness.measure.api import measure_cell
from harness.measure.values import Value
from harness.measure.view import CellView
from harness.report.measured import cell_view, disturbed, load_manifest, observed
from harness.simulate.reading import nearest

RUNS = Path("runs")


@dataclass(frozen=True)
class MeasuredCell:
    """The repeats of one cell that ended well.

    Attributes:
        name: the id of the cell without its repeat.
        config: its resolved configuration.
        values: by repeat, every figure by its tag and variant.
    """

    run: str
    name: str
    config: Mapping[str, Any]
    views: Sequence[CellView]
    values: Sequence[Mapping[str, Value]]

    def middle(self, figure: str) -> float | None:
        """The median of a figure over the repeats that have it."""
        found = [v.value for values in self.values if (v := values.get(figure)) and v.value is not None]
        return median(found) if found else None

    def why(self, figure: str) -> str:
        """Why no repeat has a figure."""
        return next((v.reason for values in self.values if (v := values.get(figure)) and v.reason), "not measured")

    def variants(self, tag: str) -> list[str]:
        """The members of a family of figures that some repeat has a number of, in their order."""
        named = [v for values in self.values for v in values.values() if v.tag == tag and v.value is not None]
        return list(dict.fromkeys(value.variant for value in named))


def measured_cell(run: str, cell: str | None) -> MeasuredCell:
    """The repeats of a cell of a run; `cell` names it, with or without its repeat, where the run has several.

    Raises:
        UserError: there is no such run or cell, or nothing of it was measured.
    """
    folder = find_run(run, RUNS)
    manifest = load_manifest(folder)
    if manifest.get("ingested"):
        raise UserError(f"{folder.name} was ingested: it holds what its framework wrote, and no stages")
    able = [row for row in manifest["cells"] if row["status"] == "ok" and not disturbed(row)]
    able = [row for row in able if observed(manifest, row)]
    labels = list(dict.fromkeys(_label(row) for row in able))
    if cell is None and len(labels) != 1:
        raise UserError(f"{folder.name} has {len(labels)} cells that were measured: give cell= one of {labels}")
    name = cell or labels[0]
    rows = [row for row in able if name in (_label(row), row["cell_id"])]
    if not rows:
        raise UserError(f"cell={name}: {folder.name} has no such cell that was measured{nearest(name, labels)}")
    views = [cell_view(folder, manifest, row) for row in rows]
    values = [{value.name: value for value in measure_cell(view)} for view in views]
    return MeasuredCell(folder.name, name, manifest["configs"][_label(rows[0])]["resolved"], views, values)


def _label(row: Mapping[str, Any]) -> str:
    return str(row["cell_id"]).rsplit(".r", 1)[0]


@dataclass(frozen=True)
class Compared:
    """A prediction beside what was measured, both in the same unit; `show` writes such a number for a reader."""

    name: str
    predicted: float
    measured: float | None
    formula: str
    why: str = ""

    def add_to(self, answer: Answer, show: Any) -> None:
        """One row, and all of its numbers under `compared` for `--json`."""
        rest = None if self.measured is None else self.measured - self.predicted
        if self.measured is None or rest is None:
            shown = f"predicted {show(self.predicted)}, not measured: {self.why}"
        else:
            sign = "+" if rest >= 0 else "-"
            share = f", {abs(rest) / self.measured:.1%}" if self.measured else ""
            shown = f"{show(self.measured)}, predicted {show(self.predicted)}, rest {sign}{show(abs(rest))}{share}"
        answer.add(self.name, self.measured, shown, self.formula)
        told = {"predicted": self.predicted, "measured": self.measured, "unexplained": rest}
        answer.more.setdefault("compared", {})[self.name] = told
