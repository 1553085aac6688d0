"""Commands that run cells: compare, run, drill."""

import sys
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console

from harness.commands.words import (
    EXIT_BROKEN,
    EXIT_COULD_NOT_MEASURE,
    AsJson,
    Overrides,
    one_line_errors,
    print_json,
    words,
)
from harness.execute.session import choices_of, drill_choices, run_session
from harness.report.console import print_comparison
from harness.report.drills import print_drills

ShowConfig = Annotated[bool, typer.Option("--cfg", help="Print the resolved configuration and stop.")]


def _run_and_report(overrides: list[str] | None, *, cfg: bool, as_json: bool, single: bool) -> None:
    from harness.report.build import build_report  # draws: 100 MB of plotting libraries that no other command needs

    choices = choices_of(overrides or [], single=single)
    if cfg:
        _show_configs({choice.label: choice.config for choice in choices}, as_json=as_json)
        return
    run = run_session(choices, words)
    words.print("measuring and writing the report", highlight=False)
    model = build_report(run)
    if as_json:
        print_json(model.as_dict())
    else:
        print_comparison(model, Console(), run / "report.html")
    if any(cell["status"] == "failed" or (cell["status"] == "not_run" and cell["cause"]) for cell in model.cells):
        raise typer.Exit(EXIT_COULD_NOT_MEASURE)


def _show_configs(configs: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(configs)
    else:
        sys.stdout.write(yaml.safe_dump(configs, sort_keys=False))


@one_line_errors
def compare(overrides: Overrides = None, cfg: ShowConfig = False, as_json: AsJson = False) -> None:
    """Run a task through several adapters in turn, measure, and print the comparison; resumes what was interrupted."""
    _run_and_report(overrides, cfg=cfg, as_json=as_json, single=False)


@one_line_errors
def run(overrides: Overrides = None, cfg: ShowConfig = False, as_json: AsJson = False) -> None:
    """Run one cell once, and report on it."""
    _run_and_report(overrides, cfg=cfg, as_json=as_json, single=True)


@one_line_errors
def drill(overrides: Overrides = None, cfg: ShowConfig = False, as_json: AsJson = False) -> None:
    """Break a cell on purpose (fault=...), beside the same undisturbed, and say whether what followed is the same
    experiment. Ends with 0 if each is, 1 if one is not."""
    choices = drill_choices(overrides or [])
    if cfg:
        _show_configs({choice.label: choice.config for choice in choices}, as_json=as_json)
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
