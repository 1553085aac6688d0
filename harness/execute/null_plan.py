"""The A/A test of a plan: one of its columns against itself, before anything is compared.

What two equal arms differ by is noise: of this machine, now. Where it is too much, nothing that follows could be told.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.execute.cell import cell_name
from harness.execute.compose import UNDISTURBED, Choice
from harness.execute.plan import PlannedCell, cell_of, harness_hash, plan_cell, turned
from harness.execute.prepare import INSTRUMENT

ARMS = ("null-a", "null-b")
PAIRS = 5
"""Where `null_test.pairs` says nothing and there is something to compare."""


def plan_null(choices: Sequence[Choice]) -> list[PlannedCell]:
    """The cells of the A/A test in their order, A B B A; none where none is asked for, or no column can be run.

    It is asked for by `null_test.pairs`; where that is null, by there being two columns that nothing disturbs.
    """
    columns = [choice for choice in choices if choice.fault == UNDISTURBED]
    asked = choices[0].config["null_test"]["pairs"]
    pairs = (PAIRS if len(columns) > 1 else 0) if asked is None else asked
    harness = harness_hash() if pairs else ""
    chosen = next((choice for choice in sorted(columns, key=_order) if pairs and _runs(choice, harness)), None)
    if chosen is None:
        return []
    planned: list[PlannedCell] = []
    for repeat in range(pairs):
        cell = plan_cell(chosen, repeat, harness)
        planned += turned([_arm(cell, arm) for arm in ARMS], repeat)
    return planned


def null_facts(cells: Sequence[PlannedCell]) -> dict[str, Any]:
    """What the manifest says of the A/A test before it is judged."""
    config = cells[0].config
    return {
        "pairs": len(cells) // len(ARMS),
        "adapter": cells[0].system,
        "layout": config["layout"]["name"],
        "track": config["track"]["name"],
        "cells": [cell.cell_id for cell in cells],
        "max_noise": config["null_test"]["max_noise"],
        "noise": None,
        "margin": {},
        "stopped": None,
        "failed": None,
    }


def _order(choice: Choice) -> tuple[bool, str, str, str]:
    """The reference loop first, then by name."""
    config = choice.config
    return choice.system != INSTRUMENT, choice.system, config["layout"]["name"], config["track"]["name"]


def _runs(choice: Choice, harness: str) -> bool:
    cell = plan_cell(choice, 0, harness)
    try:
        return cell.adapter.driver.skip(cell_of(cell, "", Path(), None)) is None
    except UserError:
        return False


def _arm(cell: PlannedCell, arm: str) -> PlannedCell:
    config = cell.config
    name = cell_name(arm, config["layout"]["name"], config["track"]["name"], cell.repeat)
    return replace(cell, cell_id=name, label=arm, twin=name)
