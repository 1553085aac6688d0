"""Task settings that two systems hold differently, and that make theirs another work."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.compare.results import CellResult

OF_NO_WORK = ("advantage_eps",)
"""Settings that may differ: what is added to a deviation of rewards, to divide by, changes no number of operations, and
an advantage by less than 0.1 %. A learning rate is none of these: with another one, other texts are written."""


def settings_breach(subject: Sequence[CellResult], baseline: Sequence[CellResult], name: str) -> str | None:
    """Which settings the two hold differently, with both values, or None.

    Args:
        name: that of the baseline.
    """
    own, its = _held(subject), _held(baseline)
    differing = [key for key in own if key in its and key not in OF_NO_WORK and own[key] != its[key]]
    if not differing:
        return None
    return "; ".join(f"{key} is {own[key]} here and {its[key]} in {name}" for key in differing)


def _held(cells: Sequence[CellResult]) -> Mapping[str, Any]:
    """By setting what was in force, of the first repeat that read its settings back."""
    rows = next((cell.fidelity for cell in cells if cell.fidelity), ())
    return {row["setting"]: row["in_force"] for row in rows}
