"""Commands that run cells: compare, run, drill."""

import sys
from typing import Annotated, Any, Literal

import typer
import yaml
from rich.console import Console

from harness.commands.null_test import judge_null
from harness.commands.words import (
    EXIT_BROKEN,
    EXIT_COULD_NOT_MEASURE,
    AsJson,
    Overrides,
    one_line_errors,
    print_json,
    words,
)
from harness.execute.compose import Choice, output_of
from harness.execute.extend import choices_in
from harness.execute.run_folder import find_run
from harness.execute.session import choices_of, drill_choices, run_session
from harness.report.console import print_comparison
from harness.report.drills import print_drills

ShowConfig = Annotated[bool, typer.Option("--cfg", help="Print the resolved configuration and stop.")]
Into = Annotated[str | None, typer.Option(help="A run to add to (folder, id, or `latest`); what it has is kept.")]
Redo = Annotated[
    Literal["failed"] | None, typer.Option(help="`failed`: run those cells again; their rows are kept in the manifest.")
]


def _run_and_report(choices: list[Choice], *, cfg: bool, as_json: bool, **asked: Any) -> None:
    """Run, report and end; `asked` is what `run_session` takes beside."""
    from harness.report.build import build_report  # draws: 100 MB of plotting libraries that no other command needs

    if cfg:
        show_configs({choice.label: choice.config for choice in choices}, as_json=as_json)
        return
    run = run_session(choices, words, **asked)
    words.print("measuring and writing the report", highlight=False)
    model = build_report(run)
    if as_json:
        print_json(model.as_dict())
    else:
        print_comparison(model, Console(), run / "report.html")
    if any(cell["status"] == "failed" or (cell["status"] == "not_run" and cell["cause"]) for cell in model.cells):
        raise typer.Exit(EXIT_COULD_NOT_MEASURE)


def show_configs(configs: dict[str, Any], *, as_json: bool) -> None:
    """Print the resolved configuration of each system."""
    if as_json:
        print_json(configs)
    else:
        sys.stdout.write(yaml.safe_dump(configs, sort_keys=False))


@one_line_errors
def compare(
    overrides: Overrides = None, into: Into = None, redo: Redo = None, cfg: ShowConfig = False, as_json: AsJson = False
) -> None:
    """Run a task through several adapters in turn, measure, and print the comparison; resumes what was interrupted."""
    given = overrides or []
    folder = find_run(into, output_of(given)) if into else None
    choices = choices_in(folder, given) if folder else choices_of(given, single=False)
    asked = {"into": folder, "redo": redo is not None, "judge_null": judge_null}
    _run_and_report(choices, cfg=cfg, as_json=as_json, **asked)


@one_line_errors
def run(overrides: Overrides = None, cfg: ShowConfig = False, as_json: AsJson = False) -> None:
    """Run one cell once, and report on it."""
    _run_and_report(choices_of(overrides or [], single=True), cfg=cfg, as_json=as_json)


@one_line_errors
def drill(overrides: Overrides = None, cfg: ShowConfig = False, as_json: AsJson = False) -> None:
    """Break a cell on purpose (fault=...), beside the same undisturbed, and say whether what followed is the same
    experiment. Ends with 0 if each is, 1 if one is not."""
    choices = drill_choices(overrides or [])
    if cfg:
        show_configs({choice.label: choice.config for choice in choices}, as_json=as_json)
        return
    from harness.report.build import build_report  # draws, as `compare` does

    run = run_session(choices, words)
    model = build_report(run)
    if as_json:
        print_json(model.as_dict())
    else:
        print_drills(model, Console())
        Console().print(str(run / "report.html"), markup=False, highlight=False, soft_wrap=True)
    if any(cell["status"] != "ok" for cell in model.cells) or any(v["continues"] is None for v in model.verdicts):
        raise typer.Exit(EXIT_COULD_NOT_MEASURE)
    if not all(verdict["continues"] for verdict in model.verdicts):
        raise typer.Exit(EXIT_BROKEN)
