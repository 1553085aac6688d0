"""Commands that read a run that is there: report, check, trace."""

import sys
from pathlib import Path

import typer
from rich.console import Console

from harness.audit import check_run
from harness.commands.words import EXIT_BROKEN, AsJson, Output, RunName, one_line_errors, print_json, words
from harness.execute.run_folder import find_run
from harness.report.console import print_comparison
from harness.report.published_index import complaints
from harness.report.seals import published_in
from harness.report.trace import render_trace, trace_object


@one_line_errors
def report(run: RunName, output: Output = Path("runs"), as_json: AsJson = False) -> None:
    """Measure a run again from its ledgers and write report.json, report.md and report.html."""
    from harness.report.build import build_report  # draws: 100 MB of plotting libraries that no other command needs

    folder = find_run(run, output)
    model = build_report(folder)
    if as_json:
        print_json(model.as_dict())
    else:
        print_comparison(model, Console(), folder / "report.html")


@one_line_errors
def check(run: RunName, output: Output = Path("runs"), as_json: AsJson = False) -> None:
    """Is every ledger of a run whole and lawful? Of a folder of results: is everything as it was published? Ends with 0
    if so, else with the place of each violation."""
    if published_in(Path(run)):
        _check_published(Path(run), as_json=as_json)
        return
    violations = check_run(find_run(run, output))
    if as_json:
        print_json({"ok": not violations, "violations": [violation.as_dict() for violation in violations]})
    for violation in violations:
        line = f"{violation.rule} [{violation.table}] {violation.where}: {violation.detail}"
        words.print(line, markup=False, highlight=False, soft_wrap=True)
    if not violations and not as_json:
        Console().print("the ledgers are whole and lawful", highlight=False)
    if violations:
        raise typer.Exit(EXIT_BROKEN)


def _check_published(results: Path, *, as_json: bool) -> None:
    broken = complaints(results)
    if as_json:
        print_json({"ok": not broken, "violations": broken})
    for line in broken:
        words.print(line, markup=False, highlight=False, soft_wrap=True)
    if not broken and not as_json:
        Console().print(f"everything in {results} is as it was published", highlight=False, markup=False)
    if broken:
        raise typer.Exit(EXIT_BROKEN)


@one_line_errors
def trace(run: RunName, sample_id: str, cell: str = "", output: Output = Path("runs"), as_json: AsJson = False) -> None:
    """The way of one sample: prompt, version that sampled it, verifier, batch, optimizer step, resulting version."""
    folder = find_run(run, output)
    if as_json:
        print_json(trace_object(folder, sample_id, cell or None))
    else:
        sys.stdout.write(render_trace(folder, sample_id, cell or None) + "\n")
