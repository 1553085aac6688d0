"""The numbers of a group of cells that a comparison is made of: of each gating figure, one a repeat."""

import math
from collections.abc import Sequence
from statistics import median

from harness.compare.gates import LEAST_SHARE, PART, STEP, gate_of
from harness.compare.results import CellResult
from harness.measure.values import Value


def gating_figures(*groups: Sequence[CellResult]) -> dict[str, Value]:
    """By name, the first value of every gating figure that some repeat of some group has, and that is not 0; of the
    parts of a step those that take their share of it in one of the groups."""
    found: dict[str, Value] = {}
    for cell in (cell for group in groups for cell in group if cell.status == "ok"):
        for value in cell.values:
            if value.value and gate_of(value):
                found.setdefault(value.name, value)
    return {name: value for name, value in found.items() if value.tag != PART or _large(name, groups)}


def _large(part: str, groups: Sequence[Sequence[CellResult]]) -> bool:
    shares = []
    for group in groups:
        parts, steps = by_repeat(group, part), by_repeat(group, STEP)
        shares.append(
            median(number / steps[k] for k, number in parts.items() if k in steps) if parts and steps else 0.0
        )
    return max(shares, default=0.0) >= LEAST_SHARE


def by_repeat(cells: Sequence[CellResult], name: str) -> dict[int, float]:
    """The figure in each repeat that ended well and has a number of which there is a logarithm."""
    values = {cell.repeat: cell.find(name) for cell in cells if cell.status == "ok"}
    numbers = {repeat: value.value for repeat, value in values.items() if value is not None}
    return {repeat: number for repeat, number in numbers.items() if number is not None and 0 < number < math.inf}
