"""The command that builds the static site of published results: site."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.commands.axes import mapped
from harness.commands.words import EXIT_COULD_NOT_MEASURE, AsJson, one_line_errors, print_json, words


@one_line_errors
def site(
    results: Annotated[Path, typer.Option(help="The folder of published runs.")] = Path("results"),
    output: Annotated[Path, typer.Option(help="The folder to write; a site that is there is replaced.")] = Path("site"),
    as_json: AsJson = False,
) -> None:
    """Build a static site of what is published: plain pages, opened from the file system or put on any web server."""
    from harness.report.site import build_site  # loads the plotting libraries, for the colours of the report

    built = build_site(results, output, mapped([]))
    if as_json:
        broken = [{"path": one.path, "reason": one.reason} for one in built.broken]
        said = {"site": str(built.index), "runs": built.runs, "pages": built.pages}
        print_json({**said, "broken": broken, "changed": built.changed})
    else:
        line = f"{built.index}: {built.runs} published runs, {built.pages} pages beside them"
        Console().print(line, highlight=False, markup=False, soft_wrap=True)
    remarks = [f"left out: {one.path}: {one.reason}" for one in built.broken]
    for remark in [*remarks, *(f"not as it was published: {line}" for line in built.changed)]:
        words.print(remark, style="yellow", markup=False, highlight=False, soft_wrap=True)
    if built.broken:
        raise typer.Exit(EXIT_COULD_NOT_MEASURE)
