"""Commands that plan before anything is rented: plan memory, pipeline, queue, checkpoint, simulate, what-if."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from harness.commands.plan_figures import FIGURES, number
from harness.commands.plan_formulas import plan_checkpoint, plan_pipeline, plan_queue
from harness.commands.plan_memory import plan_memory
from harness.commands.plan_memory_run import plan_memory_run
from harness.commands.plan_pipeline_run import plan_pipeline_run
from harness.commands.plan_sweep import is_sweep, launcher_words, sweep, tell_sweep
from harness.commands.plan_what_if import print_what_if, what_if
from harness.commands.plan_what_if_check import compare_with, print_comparison_of
from harness.commands.plan_what_if_logged import print_what_if_logged, what_if_logged
from harness.commands.words import AsJson, Output, Overrides, RunName, one_line_errors, print_json
from harness.execute.run_folder import find_run
from harness.simulate.logged import is_ingested
from harness.simulate.profiles import settings_of
from harness.simulate.run_folder import SIMULATED, simulate_into
from harness.simulate.simulate import Simulated, simulate

plan_app = typer.Typer(no_args_is_help=True, help="Formulas and a simulator: will it fit, and what would it bring?")


@plan_app.command("memory")
@one_line_errors
def memory(overrides: Overrides = None, as_json: AsJson = False) -> None:
    """Will it fit? By component and phase, from any Hugging Face config: model=FOLDER layout=colocated_sync ranks=8; or
    run=RUN cell=CELL for what a run did, beside what it was seen to use."""
    given = overrides or []
    (plan_memory_run(given) if _of_run(given) else plan_memory(given)).tell(as_json=as_json)


@plan_app.command("pipeline")
@one_line_errors
def pipeline(overrides: Overrides = None, as_json: AsJson = False) -> None:
    """What would overlap bring? G=90 T=10 batches=100 devices=16; times=[4,5,20] for stragglers; stages={...}; or
    run=RUN cell=CELL for what a run measured, beside the formulas."""
    given = overrides or []
    (plan_pipeline_run(given) if _of_run(given) else plan_pipeline(given)).tell(as_json=as_json)


@plan_app.command("queue")
@one_line_errors
def queue(overrides: Overrides = None, as_json: AsJson = False) -> None:
    """Is the queue stable, and how deep may it get? arrival=3900 service=3200 limit=32768 batch=4096."""
    plan_queue(overrides or []).tell(as_json=as_json)


@plan_app.command("checkpoint")
@one_line_errors
def checkpoint(overrides: Overrides = None, as_json: AsJson = False) -> None:
    """How often to write one? write=60 device_hours=50677 devices=16384, or between_failures= in seconds."""
    plan_checkpoint(overrides or []).tell(as_json=as_json)


@plan_app.command("simulate")
@one_line_errors
def plan_simulate(
    overrides: Overrides = None,
    output: Output = Path("runs"),
    figures_only: Annotated[bool, typer.Option(help="Keep no ledger: memory does not grow with the time.")] = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a loop, e.g. profile=smoke overlap=shallow,deep seconds=60, into a run that `report` reads. A list, as
    in rollout.replicas=8,16,32, is a sweep: one table, no ledger, and launcher=submitit_local runs it side by side."""
    given, launcher = launcher_words(overrides or [])
    if is_sweep(given) or launcher:
        told = sweep(given, launcher, output)
        tell_sweep(told, as_json=as_json)
        return
    cells = settings_of(given)
    folder, done = (None, [simulate(cell) for cell in cells]) if figures_only else simulate_into(output, cells)
    if as_json:
        print_json({"run": folder and str(folder), "cells": [vars(cell) for cell in done]})
        return
    _print(done)
    Console().print(f"simulated: {SIMULATED.format(ratios='synthetic')}", highlight=False, soft_wrap=True)
    if folder:
        Console().print(str(folder), markup=False, highlight=False, soft_wrap=True)


@plan_app.command("what-if")
@one_line_errors
def plan_what_if(
    run: RunName, overrides: Overrides = None, output: Output = Path("runs"), as_json: AsJson = False
) -> None:
    """From a synchronous cell that was measured, or an ingested log: the period, lag and idle time of each layout;
    cell=, lag_bound=1,2."""
    folder = find_run(run, output)
    logged = is_ingested(folder)
    told = (what_if_logged if logged else what_if)(folder, overrides or [])
    if as_json:
        print_json(told)
    else:
        (print_what_if_logged if logged else print_what_if)(told)


@plan_app.command("what-if-check")
@one_line_errors
def plan_what_if_check(
    prediction: Annotated[Path, typer.Argument(help="What `plan what-if --json` printed.")],
    run: RunName,
    output: Output = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """What was predicted beside what a later run measured."""
    told = compare_with(prediction, find_run(run, output))
    if as_json:
        print_json(told)
    else:
        print_comparison_of(told)


def _of_run(given: list[str]) -> bool:
    return any(word.startswith("run=") for word in given)


def _print(done: list[Simulated]) -> None:
    table = Table("", *(cell.name or "simulated" for cell in done), box=None)
    for key, title in FIGURES.items():
        table.add_row(title, *(number(cell.figures[key]) for cell in done))
    Console().print(table)
