"""The comparison as a table in a terminal, 100 columns wide, with the path of the report."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from harness.report import format as fmt
from harness.report.drills import print_drills
from harness.report.headlines import HEADLINES
from harness.report.judgements import print_judgements
from harness.report.model import ReportModel
from harness.report.table import Entry, Family, Line, Table, comparison, unit_beside
from harness.report.views import counts, visible

MOST_CAUTIONS = 6


def print_comparison(model: ReportModel, console: Console, html: Path) -> None:
    """Print the figures that speak first, what to distrust, and where the rest is."""
    if model.ingested:
        _print_ingested(model, console)
    for track in model.tracks if not model.ingested else ():
        table = comparison(model, track, HEADLINES)
        if table.topics:
            console.print(_grid(table, model))
            if silent := _without_value(table):
                console.print(f"without a value: {'; '.join(silent)}", style="dim", markup=False, highlight=False)
            for number in _notes(table):
                text = visible(table.notes[number - 1])
                console.print(f"  [{number}] {text}", markup=False, highlight=False, style="dim")
    for caution in model.cautions[:MOST_CAUTIONS]:
        console.print(f"! {caution.about}: {visible(caution.text)}", style="yellow", markup=False, highlight=False)
    if len(model.cautions) > MOST_CAUTIONS:
        more = len(model.cautions) - MOST_CAUTIONS
        console.print(f"! and {more} more in the report", style="yellow", highlight=False)
    print_judgements(model, console)
    print_drills(model, console)
    if not model.ingested:
        console.print(f"{counts(model)}; the order is that of the names, nothing is ranked", highlight=False)
    console.print(str(html), markup=False, highlight=False, soft_wrap=True)


def _print_ingested(model: ReportModel, console: Console) -> None:
    """The figures that the framework of a run that was recorded elsewhere wrote itself, and how many it did not."""
    console.print(model.title, style="bold", markup=False, highlight=False)
    written = [row for row in model.rows if row.state == "as written"]
    for row in written:
        title = model.definitions[row.measure].title
        text = f"  {title}: {fmt.quantity(row.value, row.unit)} ({row.reason})"
        console.print(visible(text), markup=False, highlight=False, soft_wrap=True)
    silent = len({row.measure for row in model.rows if row.value is None})
    console.print(f"  {silent} figures have no value: the report says of each why", highlight=False)


def _grid(table: Table, model: ReportModel) -> Grid:
    title = escape(f"{model.title}, track {fmt.words(table.track)}: median [interval], repeats: {model.repeats}")
    grid = Grid(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column("", max_width=46)
    several = len({layout for _, layout in table.columns}) > 1
    for adapter, layout in table.columns:
        grid.add_column(escape(adapter) + (f"\n{fmt.words(layout)}" if several else ""), justify="left")
    for topic in table.topics:
        shown = [(family, line) for family in topic.families for line in _first(family) if _valued(line)]
        if shown:
            grid.add_row(f"[bold]{escape(topic.name)}[/bold]")
        for family, line in shown:
            grid.add_row("  " + escape(_name(family, line, with_unit=True)), *(_entry(entry) for entry in line.entries))
    return grid


def _first(family: Family) -> list[Line]:
    """Of a family that has a figure for the whole, that one; else all."""
    return family.lines[:1] if not family.lines[0].variant else family.lines


def _valued(line: Line) -> bool:
    return any(entry.valued for entry in line.entries)


def _name(family: Family, line: Line, *, with_unit: bool = False) -> str:
    name = family.definition.title + (f", {fmt.words(line.variant)}" if line.variant else "")
    unit = unit_beside(name, line) if with_unit else ""
    return f"{name}, {unit}" if unit else name


def _notes(table: Table) -> list[int]:
    """The remarks that the lines shown refer to."""
    lines = [line for topic in table.topics for family in topic.families for line in _first(family)]
    return sorted({entry.note for line in lines for entry in line.entries} - {0})


def _without_value(table: Table) -> list[str]:
    """Figures that no column has, with their remarks: said in one line, and in the report in full."""
    lines = [(family, line) for topic in table.topics for family in topic.families for line in _first(family)]
    silent = [(family, line) for family, line in lines if not _valued(line)]
    return [f"{_name(family, line)} {sorted({e.note for e in line.entries})}" for family, line in silent]


def _bounds(interval: str) -> str:
    return interval if interval.startswith("±") else f"[{interval.replace(' ', '')}]"


def _entry(entry: Entry) -> str:
    note = f" [dim]\\[{entry.note}][/dim]" if entry.note else ""
    if not entry.valued:
        return f"[dim]{escape(entry.text)}[/dim]{note}"
    bounds = f" [dim]{escape(_bounds(entry.interval))}[/dim]" if entry.interval else ""
    differs = " ≠" if entry.state == "not comparable" else ""
    return f"{entry.text}{differs}{bounds}{note}"
