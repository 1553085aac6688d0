"""Commands that plan before anything is rented: plan simulate."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from harness.commands.words import AsJson, Output, Overrides, one_line_errors, print_json
from harness.simulate.profiles import settings_of
from harness.simulate.run_folder import SIMULATED, simulate_into
from harness.simulate.simulate import Simulated, simulate

plan_app = typer.Typer(no_args_is_help=True, help="Formulas and a simulator: will it fit, and what would it bring?")

FIGURES = {
    "seconds": "Simulated, s",
    "steps": "Optimizer steps",
    "tokens_per_s": "Training tokens/s",
    "period_s": "Period, s",
    "trainer_busy": "Trainer busy, share",
    "trainer_waiting": "Trainer waiting, share",
    "lag_mean": "Lag, mean, updates",
    "lag_p95": "Lag, p95, updates",
    "lag_max": "Lag, largest, updates",
    "age_mean_s": "Age, mean, s",
    "ess_tokens": "ESS / n, tokens (synthetic)",
    "ess_sequences": "ESS / n, sequences (synthetic)",
    "depth_mean_tokens": "Queue depth, mean, tokens",
    "depth_max_tokens": "Queue depth, largest, tokens",
    "overshoot_tokens": "Overshoot after closing, tokens",
    "backpressure": "Admission closed, share",
    "dropped_share": "Dropped tokens, share",
    "lost_tokens": "Lost by deaths of replicas, tokens",
}


@plan_app.command("simulate")
@one_line_errors
def plan_simulate(
    overrides: Overrides = None,
    output: Output = Path("runs"),
    figures_only: Annotated[bool, typer.Option(help="Keep no ledger: memory does not grow with the time.")] = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a loop, e.g. profile=smoke overlap=shallow,deep seconds=60, into a run that `report` reads."""
    cells = settings_of(overrides or [])
    folder, done = (None, [simulate(cell) for cell in cells]) if figures_only else simulate_into(output, cells)
    if as_json:
        print_json({"run": folder and str(folder), "cells": [vars(cell) for cell in done]})
        return
    _print(done)
    Console().print(f"simulated: {SIMULATED.format(ratios='synthetic')}", highlight=False, soft_wrap=True)
    if folder:
        Console().print(str(folder), markup=False, highlight=False, soft_wrap=True)


def _print(done: list[Simulated]) -> None:
    table = Table("", *(cell.name or "simulated" for cell in done), box=None)
    for key, title in FIGURES.items():
        table.add_row(title, *(number(cell.figures[key]) for cell in done))
    Console().print(table)


def number(value: Any) -> str:
    """A figure with four digits that count."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"
