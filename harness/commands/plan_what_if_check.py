"""`rlaxes plan what-if-check`: what `plan what-if` predicted, beside what a later run measured."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from harness.commands.plan_words import seconds
from harness.commands.words import words
from harness.contract import read_cell
from harness.errors import UserError
from harness.measure.api import MeasureContext, view_of
from harness.measure.figures.pipeline import Period
from harness.measure.measure import UnmeasuredError


def compare_with(prediction: Path, folder: Path) -> dict[str, Any]:
    """What was predicted beside what a later run measured: the mean over repeats of `period_seconds`; `error` is
    predicted over measured, less 1; `relative_error` the same after scaling by the calibrated cell's own period in the
    later run, where it has that cell: what is left is not the machine's pace.

    Raises:
        UserError: the prediction cannot be read, or the run has none of its cells.
    """
    try:
        told = json.loads(prediction.read_text(encoding="utf-8"))
        if told.get("evidence"):
            raise UserError(f"{prediction} was {told['evidence']}: no cell of a run is of the loop that was logged")
        rows, base, system = told["predictions"], told["calibration"]["period_s"], told["cell"].split(".")[0]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{prediction} is not what `plan what-if --json` printed: {error!r}") from error
    measured = _periods(folder, system)
    asked = told["calibration"]["replicas"], told["calibration"]["ranks"]
    own = measured.get((told["calibration"]["layout"], 0))
    out = []
    for row in rows:
        periods = measured.get((row["layout"], row["lag_bound"]))
        if periods is None or row["refused"] or (row["replicas"], row["ranks"]) != asked:
            continue
        mean = sum(periods) / len(periods)
        pace = sum(own) / len(own) / base if own else None
        predicted = row["period_s"]
        out.append(
            {
                "layout": row["layout"],
                "lag_bound": row["lag_bound"],
                "predicted_s": predicted,
                "interval_s": row["interval"]["period_s"] if row["interval"] else None,
                "measured_s": mean,
                "repeats_s": periods,
                "error": predicted / mean - 1,
                "relative_error": None if pace is None else predicted * pace / mean - 1,
            }
        )
    if not out:
        raise UserError(f"{folder.name} has no cell that {prediction} predicts")
    return {"prediction": told["run"], "outcome": folder.name, "cells": out}


def print_comparison_of(told: Mapping[str, Any]) -> None:
    """A row a cell."""
    table = Table("", "bound", "predicted", "measured", "error", "at the run's own pace", box=None)
    for row in told["cells"]:
        relative = "-" if row["relative_error"] is None else f"{row['relative_error']:+.1%}"
        shown = (seconds(row["predicted_s"]), seconds(row["measured_s"]), f"{row['error']:+.1%}", relative)
        table.add_row(row["layout"], str(row["lag_bound"]), *shown)
    Console(width=120, highlight=False).print(table)
    words.print(f"predicted from {told['prediction']}, measured in {told['outcome']}", markup=False, highlight=False)


def _periods(folder: Path, system: str) -> dict[tuple[str, int], list[float]]:
    """By layout and lag bound the measured period of each repeat, of one system's cells that have one."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    out: dict[tuple[str, int], list[float]] = {}
    for row in manifest["cells"]:
        if row["status"] != "ok" or row["system"] != system:
            continue
        config = manifest["configs"][row["cell_id"].rsplit(".r", 1)[0]]["resolved"]
        task, layout = config["task"], config["layout"]
        try:
            ledger = read_cell(folder / "ledger", row["cell_id"])
            period = Period().compute(view_of(ledger, MeasureContext(task, int(task["warmup_steps"])))).value
        except ValueError as error:
            raise UserError(str(error)) from error
        except UnmeasuredError:
            continue
        if period is not None:
            out.setdefault((layout["name"], int(layout.get("lag_bound") or 0)), []).append(period)
    return out
