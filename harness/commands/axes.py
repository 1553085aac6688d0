"""The command that prints the framework map: axes."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.commands.words import AsJson, one_line_errors, print_json
from harness.contract.axes import AXES
from harness.execute.adapter import find_adapter, find_adapters
from harness.report.framework_map import MapEntry, framework_map, published
from harness.report.map_pages import map_html, map_markdown, said_before, with_map

NO_FRAMEWORK = ("fake",)
"""Adapters that are shown only where they are asked for."""
NAME_WIDTH = 12
PAGE = Path(__file__).resolve().parents[2] / "docs" / "framework_map.md"


@one_line_errors
def axes(
    names: Annotated[list[str] | None, typer.Argument(help="Frameworks, shown whole. None: values of all.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write the map as one HTML page.")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="What docs/framework_map.md shows.")] = False,
    results: Annotated[Path, typer.Option(help="The folder of published runs.")] = Path("results"),
    as_json: AsJson = False,
) -> None:
    """What does each framework declare on each axis, with which source, what changed since, and what was measured?"""
    adapters = mapped(names or [])
    entries = framework_map(adapters, published(results))
    if html:
        html.write_text(map_html(entries, adapters), encoding="utf-8")
    if as_json:
        vocabulary = {axis: asdict(kind) for axis, kind in AXES.items()}
        print_json({"axes": [asdict(entry) for entry in entries], "vocabulary": vocabulary})
    elif markdown:
        sys.stdout.write(map_markdown(entries) + "\n")
    elif not html:
        _print(entries, Console(), whole=bool(names))


def mapped(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The content of the `adapter.yaml` of each name; of no name, of every framework.

    Raises:
        UserError: there is no adapter of that name.
    """
    if names:
        return {name: find_adapter(name).spec for name in names}
    return {name: adapter.spec for name, adapter in find_adapters().items() if name not in NO_FRAMEWORK}


def framework_page() -> str:
    """docs/framework_map.md with the map as it is declared today; its other words stay."""
    return with_map(PAGE.read_text(encoding="utf-8"), framework_map(mapped([])))


def _print(entries: Sequence[MapEntry], console: Console, *, whole: bool) -> None:
    for axis, declared in groupby(entries, key=lambda entry: entry.axis):
        kind = AXES[axis]
        name = "" if axis == kind.title else f" ({axis})"
        console.print(Text.assemble((kind.title, "bold"), f"{name}: {kind.asks}"))
        grid = Table.grid(padding=(0, 1))
        grid.add_column(width=NAME_WIDTH)
        grid.add_column()
        for entry in declared:
            grid.add_row(Text(f"  {entry.adapter}"), Text(", ".join(entry.values), style="bold" if whole else ""))
            for line in _details(entry) if whole else ():
                grid.add_row("", line)
        console.print(grid)
        console.print()
    if not whole:
        console.print("nothing is ranked; `rlaxes axes NAME...` gives sentences, sources, changes and measurements")


def _details(entry: MapEntry) -> Iterator[Text]:
    yield Text(entry.declared)
    yield Text(f"{entry.source} ({entry.version}, read {entry.date})", style="dim")
    if entry.stale:
        yield Text(f"stale: {entry.stale}", style="yellow")
    if seen := entry.measured:
        mark = "measured otherwise" if seen.differs else "measured"
        yield Text(f"{mark}: {seen.value} ({seen.evidence}; {seen.version}, {seen.run})")
    for former in entry.changed:
        yield Text(f"changed: {said_before(former)}", style="dim")


if __name__ == "__main__":
    PAGE.write_text(framework_page(), encoding="utf-8")
