"""An existing run: cells are added to it, or those of it that failed are run again. What was measured stays."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.execute.compose import Choice, compose_choices
from harness.execute.machine import machine_id
from harness.execute.plan import UNKEYED, PlannedCell, keyed, plan_hash
from harness.execute.run_folder import MANIFEST, RunFolder, hold_run

TABLES = ("null_cells", "cells")
COMMON = ("task", "model", "profile", "price", "seed", "observer")
"""Settings that all cells of a run share; the others belong to a column."""
INSIDES = {"lock": "lock of its environment", "adapter": "adapter's code", "harness": "code of rlaxes that runs a cell"}
ELSEWHERE = "start a run of its own, or ask for what is there"
Row = dict[str, Any]


def choices_in(path: Path, overrides: Sequence[str]) -> list[Choice]:
    """What the words ask for in a run that is there. Where they name no setting of a cell (`repeats=8`, or none at
    all), it is what the run was asked for, with these words.

    Raises:
        UserError: a word is wrong, or the run holds nothing that could be asked for again.
    """
    keys = {word.partition("=")[0].partition(".")[0] for word in overrides}
    if not keys <= set(UNKEYED):
        return compose_choices(overrides)
    given = compose_choices(overrides)[0].config
    # A run does not keep every setting that no cell depends on.
    base, asked = ({key: given[key] for key in names} for names in (UNKEYED, keys))
    return [replace(choice, config=base | choice.config | asked) for choice in _choices_of_run(path)]


def _choices_of_run(path: Path) -> list[Choice]:
    manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    systems = {_column(row["cell_id"]): row["system"] for row in manifest["cells"]}
    _refuse_foreign(path.name, manifest)
    if any("@" in system for system in systems.values()):
        raise UserError(f"run {path.name} compares versions: ask for its cells by the `track` command that made it")
    if not systems:
        raise UserError(f"run {path.name} has no cell yet: write the settings that it was started with")
    return [Choice(systems[column], manifest["configs"][column]["resolved"]) for column in sorted(systems)]


def _refuse_foreign(name: str, manifest: Mapping[str, Any]) -> None:
    if manifest.get("plan_hash") is None:
        raise UserError(f"run {name} was not measured by rlaxes: nothing can be added to it")
    if any("part" in row for row in manifest["cells"]):
        raise UserError(f"run {name} was measured in parts, by jobs of a launcher: nothing can be added to it")


def join_run(path: Path, cells: Sequence[PlannedCell]) -> RunFolder:
    """A run, held, that these cells are to be added to. Of those that it has already, the keys are equal.

    Raises:
        UserError: they cannot stand beside what is there; the message names what differs.
    """
    run = hold_run(path)
    try:
        _check(run, cells)
        _note_addition(run, cells)
    except UserError:
        run.release()
        raise
    return run


def reopen_run(output: Path, cells: Sequence[PlannedCell]) -> RunFolder:
    """The newest run of this very plan, held, whether it is finished or not.

    Raises:
        UserError: there is none.
    """
    wanted = plan_hash(_pairs(cells))
    for path in sorted(output.glob(f"*/{MANIFEST}"), reverse=True):
        if json.loads(path.read_text(encoding="utf-8"))["plan_hash"] == wanted:
            return hold_run(path.parent)
    raise UserError(f"no run in {output} has this plan, so there is nothing to redo; name the run: --into RUN")


def redo_failed(run: RunFolder, cells: Sequence[PlannedCell]) -> int:
    """Set aside those of the planned cells that failed, or did not run for a cause; how many they were."""
    planned = {cell.cell_id for cell in cells}
    found = [(row["cell_id"], table) for table in TABLES for row in run.manifest.get(table, []) if _failed(row)]
    again = [(cell_id, table) for cell_id, table in found if cell_id in planned]
    for cell_id, table in again:
        run.set_aside(cell_id, table)
    return len(again)


def _failed(row: Row) -> bool:
    """Whether another start could end otherwise. A cell that its adapter refuses has no cause, and is not one."""
    return row["status"] in ("failed", "torn") or (row["status"] == "not_run" and row["cause"] is not None)


def _check(run: RunFolder, cells: Sequence[PlannedCell]) -> None:
    name, manifest = run.path.name, run.manifest
    _refuse_foreign(name, manifest)
    rows = {row["cell_id"]: row for table in TABLES for row in manifest.get(table, [])}
    if manifest["finished"] is None and _plan_with(rows, cells) != manifest["plan_hash"]:
        raise UserError(f"run {name} has not ended: first let the command that started it go on, then add to it")
    if (there := (manifest.get("machine") or {}).get("id")) not in (None, machine_id()):
        raise UserError(f"run {name} is of another machine ({there}): what two machines measured is not one run")
    for cell in cells:
        if (row := rows.get(cell.cell_id)) and row["key"] != cell.key:
            raise UserError(f"{cell.cell_id} is in run {name} with another {_difference(row, manifest, cell)}")
    for row in rows.values():
        if row.get("made_of", {}).get("harness") not in (None, cells[0].made_of["harness"]):
            raise UserError(f"{row['cell_id']} is in run {name} with another {INSIDES['harness']}: {ELSEWHERE}")
    ours = {key: cells[0].config[key] for key in COMMON}
    for column, config in manifest.get("configs", {}).items():
        theirs = {key: config["resolved"][key] for key in COMMON}
        if apart := _apart(theirs, ours):
            raise UserError(f"run {name} has {column} with another {apart}: {ELSEWHERE}")


def _difference(row: Row, manifest: Mapping[str, Any], cell: PlannedCell) -> str:
    there = manifest["configs"][_column(cell.cell_id)]["resolved"]
    if apart := _apart(keyed(there), keyed(cell.config)):
        return f"{apart}: {ELSEWHERE}"
    inside = [name for key, name in INSIDES.items() if row.get("made_of", {}).get(key) != cell.made_of[key]]
    return f"{inside[0] if inside else 'repeat'}: {ELSEWHERE}"


def _apart(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """The first setting that differs, with both of its values, and how many more there are; empty where none does."""
    found = list(_differing(there, here))
    more = f", and {len(found) - 1} more settings" if len(found) > 1 else ""
    return found[0] + more if found else ""


def _differing(there: Mapping[str, Any], here: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key in sorted({*there, *here}):
        old, new = there.get(key), here.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _differing(old, new, f"{prefix}{key}.")
        elif old != new:
            yield f"{prefix}{key} ({old} there, {new} here)"


def _note_addition(run: RunFolder, cells: Sequence[PlannedCell]) -> None:
    """The plan is now that of all cells; which of them came later stays known, for they saw another hour."""
    rows = {row["cell_id"]: row for table in TABLES for row in run.manifest.get(table, [])}
    wanted = _plan_with(rows, cells)
    if wanted != run.manifest["plan_hash"]:
        added = [cell.cell_id for cell in cells if cell.cell_id not in rows]
        began = datetime.now(UTC).isoformat(timespec="seconds")
        run.manifest.setdefault("additions", []).append({"began": began, "cells": added})
        run.manifest["plan_hash"] = wanted
    run.manifest["finished"] = None
    run.save()


def _plan_with(rows: Mapping[str, Row], cells: Sequence[PlannedCell]) -> str:
    measured = {(row["cell_id"], row["key"]) for row in rows.values() if not row["cell_id"].startswith("null-")}
    return plan_hash({*measured, *_pairs(cells)})


def _pairs(cells: Sequence[PlannedCell]) -> list[tuple[str, str]]:
    return [(cell.cell_id, cell.key) for cell in cells]


def _column(cell_id: str) -> str:
    return cell_id.rsplit(".r", 1)[0]
