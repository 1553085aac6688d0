"""The first page's table: the newest comparison, a group of lines for each placement and synchrony."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.report.model import ReportModel
from harness.report.site.reading import Run
from harness.report.table import Entry, comparison, unit_beside

MEASURES = (
    "output_tokens_per_second",
    "training_tokens_per_second",
    "optimizer_steps_per_hour",
    "lag_p95",
    "ess_tokens_share",
    "mismatch_mean",
    "memory_peak_bytes",
    "unattributed_share",
)


@dataclass(frozen=True)
class Head:
    """A column: a figure, and its unit where the title does not say it."""

    title: str
    unit: str


@dataclass(frozen=True)
class Group:
    """The systems of one layout, in the order of their names."""

    layout: str
    lines: list[tuple[str, list[Entry]]]


@dataclass(frozen=True)
class NewestTable:
    """One track."""

    track: str
    heads: list[Head]
    groups: list[Group]
    notes: list[str]


def newest_view(runs: Sequence[Run]) -> dict[str, Any]:
    """Of the newest run of several systems, or else of the newest run: its tables, one a track.

    Args:
        runs: from the newest to the oldest; those that were not measured here, or were taken back, are passed over.
    """
    here = [run for run in runs if run.stands]
    compared = [run for run in here if len(_systems(run.model)) > 1] or here
    if not compared:
        return {"tables": []}
    run = compared[0]
    tables = [_table(run.model, track) for track in run.model.tracks]
    told = {"title": run.model.title, "date": run.date, "cautions": run.model.cautions, "corrections": run.corrections}
    return told | {"href": f"results/{run.folder}/index.html", "tables": [table for table in tables if table.heads]}


def _systems(model: ReportModel) -> set[str]:
    """Two versions of one system are one."""
    return {cell.get("system") or cell["adapter"] for cell in model.cells}


def _table(model: ReportModel, track: str) -> NewestTable:
    whole = replace(model, rows=[row for row in model.rows if not row.variant])
    laid = comparison(whole, track, MEASURES)
    families = [family for topic in laid.topics for family in topic.families]
    lines = [family.lines[0] for family in families]
    heads = [Head(f.definition.title, unit_beside(f.definition.title, f.lines[0])) for f in families]
    groups = [
        Group(layout, [(name, [line.entries[at] for line in lines]) for at, name in _columns(laid.columns, layout)])
        for layout in sorted({layout for _, layout in laid.columns})
    ]
    return NewestTable(track, heads, groups, laid.notes)


def _columns(columns: Sequence[tuple[str, str]], layout: str) -> list[tuple[int, str]]:
    return [(at, name) for at, (name, of) in enumerate(columns) if of == layout]
