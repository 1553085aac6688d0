"""What the figures draw from: the rows and the series of one track."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.compare.rows import Row
from harness.report.figures import style
from harness.report.model import ReportModel

Series = dict[str, Any]
"""Columns by name, as `harness.measure.series.cell_series` makes them."""


@dataclass(frozen=True)
class Missing:
    """Why a figure cannot be drawn."""

    reason: str


@dataclass(frozen=True)
class Look:
    """How one adapter in one layout is drawn in every figure: `ink` is the adapter's colour, for text; `color` its tint
    in the layout, for marks."""

    label: str
    ink: str
    color: str
    marker: str
    dash: str


class TrackData:
    """One track of a report, by column."""

    def __init__(self, model: ReportModel, track: str) -> None:
        self.model, self.track, self.columns = model, track, model.columns(track)

    def look(self, column: style.Column) -> Look:
        """The constant look of a column."""
        adapter, layout = column
        names, layouts = self.model.names, [other for _, other in self.columns]
        color, marker = style.adapter_color(adapter, names), style.adapter_marker(adapter, names)
        tint = style.layout_tint(color, layout, layouts)
        return Look(style.label(column, self.columns), color, tint, marker, style.layout_dash(layout, layouts))

    def row(self, column: style.Column, measure: str) -> Row | None:
        """The row of a figure, where it has a finite value."""
        wanted = (*column, self.track, measure, "")
        for row in self.model.rows:
            if (row.adapter, row.layout, row.track, row.measure, row.variant) == wanted:
                return row if row.value is not None and abs(row.value) != float("inf") else None
        return None

    def cells(self, column: style.Column) -> list[str]:
        """The ids of the cells of a column that ended well, by repeat."""
        own = [c for c in self.model.cells if (c["adapter"], c["layout"], c["track"]) == (*column, self.track)]
        return [c["cell_id"] for c in sorted(own, key=lambda c: c["repeat"]) if c["status"] == "ok"]

    def series(self, column: style.Column, name: str) -> list[Series]:
        """A series of each repeat that has it."""
        found = (self.model.series.get(cell, {}).get(name) for cell in self.cells(column))
        return [one for one in found if one and "reason" not in one]

    def first(self, name: str) -> Iterator[tuple[style.Column, Series]]:
        """A series of the first repeat of each column that has it."""
        for column in self.columns:
            if every := self.series(column, name):
                yield column, every[0]

    def missing(self, name: str) -> Missing:
        """Why no cell has a series."""
        cells = [cell for column in self.columns for cell in self.cells(column)]
        reasons = {self.model.series.get(cell, {}).get(name, {}).get("reason") for cell in cells} - {None}
        return Missing("; ".join(sorted(reasons)) or "no cell of this track has what it is drawn from")
