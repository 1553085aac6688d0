"""Sections of a report other than the comparison, laid out for printing; shared by the HTML and the Markdown."""

import unicodedata
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from harness.contract.axes import AXES
from harness.report import format as fmt
from harness.report.model import Axis, Completion, FidelityRow, ReportModel

LONGEST_TEXT = 400
UNSEEN = {"Cc", "Cf", "Cs", "Co"}


def clean(text: str) -> str:
    """Untrusted text with control and direction-changing characters made visible."""
    return "".join(c if c == "\n" or unicodedata.category(c) not in UNSEEN else "\ufffd" for c in text)


def visible(text: str) -> str:
    """The same, cut to what a page can bear."""
    shown = clean(text)
    return shown if len(shown) <= LONGEST_TEXT else shown[:LONGEST_TEXT] + " …"


@dataclass(frozen=True)
class AxisLine:
    """One axis over all adapters, in the order of their names; None where an adapter says nothing of it."""

    name: str
    entries: list[Axis | None]

    @property
    def title(self) -> str:
        """What the axis is called; an axis of another version of rlaxes by its own name."""
        return AXES[self.name].title if self.name in AXES else fmt.words(self.name)


def axes_view(model: ReportModel) -> list[AxisLine]:
    """Axes as lines, adapters as columns."""
    names = list(dict.fromkeys(axis.axis for axis in model.axes))
    by_place = {(axis.axis, axis.adapter): axis for axis in model.axes}
    return [AxisLine(name, [by_place.get((name, adapter)) for adapter in model.names]) for name in names]


@dataclass(frozen=True)
class FidelityTable:
    """One track: what was asked of every column and what each had in force."""

    track: str
    columns: list[tuple[str, str]]
    lines: list[tuple[str, str, list[FidelityRow | None]]]

    @property
    def summary(self) -> str:
        """How many values in force are what was asked, in words."""
        grades = [entry.grade for _, _, entries in self.lines for entry in entries if entry is not None]
        off = sum(grade != "exact" for grade in grades)
        if not off:
            return f"All {len(grades)} values in force are exactly what was asked."
        return f"{off} of {len(grades)} values in force are not exactly what was asked."


def fidelity_view(model: ReportModel) -> list[FidelityTable]:
    """Settings that differ somewhere come first, each group in its own order."""
    tables = []
    for track in model.tracks:
        rows = [row for row in model.fidelity if row.track == track]
        columns = model.columns(track)
        by_place = {(row.setting, row.adapter, row.layout): row for row in rows}
        lines = []
        for setting in dict.fromkeys(row.setting for row in rows):
            entries = [by_place.get((setting, *column)) for column in columns]
            asked = " / ".join(dict.fromkeys(fmt.setting(entry.asked) for entry in entries if entry))
            lines.append((setting, asked, entries))
        lines.sort(key=lambda line: all(entry is None or entry.grade == "exact" for entry in line[2]))
        tables.append(FidelityTable(track, columns, lines))
    return [table for table in tables if table.lines]


def cells_view(model: ReportModel) -> list[dict[str, Any]]:
    """The cells in the order in which they ran."""
    return [{"load_before": None, "foreign_cores": None, **cell} for cell in model.cells]


def completions_view(model: ReportModel) -> list[tuple[str, list[Completion]]]:
    """Completions by column."""

    def key(completion: Completion) -> str:
        return f"{completion.adapter} · {fmt.words(completion.layout)} · {fmt.words(completion.track)}"

    return [(name, list(group)) for name, group in groupby(model.completions, key=key)]


def counts(model: ReportModel) -> str:
    """How the cells ended, e.g. `9 of 10 cells ok, 1 failed`."""
    ok = sum(cell["status"] == "ok" for cell in model.cells)
    others = [cell["status"] for cell in model.cells if cell["status"] != "ok"]
    words = [f"{ok} of {len(model.cells)} cells ok"]
    words += [f"{others.count(status)} {fmt.words(status)}" for status in sorted(set(others))]
    return ", ".join(words)
