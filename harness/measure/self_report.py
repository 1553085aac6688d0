"""The self-report check: what a framework says of itself, beside what the ledger says [12.2.5]."""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from harness.measure.measure import Measure
from harness.measure.values import Value, json_number
from harness.measure.view import CellView

NAME = re.compile(r"(?P<tag>\w+)(?:\[(?P<variant>[^\]]+)\])?")
"""A figure of ours as a definition names it: `step_seconds`, or `t_seq_part_seconds[sync]` for a member of a family."""


@dataclass(frozen=True)
class SelfReport:
    """One figure that the framework prints.

    Attributes:
        key, definition: the framework's name for it, and what it really counts, over which time.
        native: its value, None where the run has none; over the steps of the measured window, or, where the framework
            gives one for the whole run, that one.
        measure, ours, unit: our figure over the same steps (see `NAME`); None where no figure of ours is its like.
        ratio: native over ours, in our unit (by the `scale` of the definition where the framework uses another).
        differs_because: why the two are not equal even where both are right.
        reason: why one of them is not there.
    """

    key: str
    definition: str
    native: float | None
    measure: str | None
    ours: float | None
    unit: str | None
    ratio: float | None
    differs_because: str
    reason: str | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        numbers = ("native", "ours", "ratio")
        return asdict(self) | {name: json_number(getattr(self, name)) for name in numbers}


def self_report(view: CellView, measures: Mapping[str, Measure]) -> list[SelfReport]:
    """One row for each native definition of the adapter, in its order."""
    figures = _figures(view)
    return [_row(view, said, figures.get(said["key"], []), measures) for said in view.context.native_definitions]


def _figures(view: CellView) -> dict[str, list[tuple[int | None, float]]]:
    """(step or None, value) of each key, in the order of the steps."""
    out: dict[str, list[tuple[int | None, float]]] = {}
    for row in view.tables.ledger.table("native", ["key", "step", "value"]).to_pylist():
        out.setdefault(row["key"], []).append((row["step"], row["value"]))
    return {key: sorted(rows, key=lambda row: -1 if row[0] is None else row[0]) for key, rows in out.items()}


def _row(
    view: CellView, said: dict[str, Any], figures: list[tuple[int | None, float]], measures: Mapping[str, Measure]
) -> SelfReport:
    whole = bool(figures) and figures[-1][0] is None
    native = figures[-1][1] if whole else _reduced(view, figures, said.get("reduce", "mean"))
    ours = _ours(view.whole_run() if whole else view, measures, said["measure"])
    reason = ours.reason if ours else "no figure of ours is its like"
    ratio = None
    if native is None:
        reason = "the framework reported none in the measured steps"
    elif ours is not None and ours.value is not None and ours.value not in (0.0, math.inf):
        ratio = native * float(said.get("scale", 1.0)) / ours.value
    return SelfReport(
        key=said["key"],
        definition=said["definition"],
        native=native,
        measure=said["measure"],
        ours=ours.value if ours else None,
        unit=ours.unit if ours else None,
        ratio=ratio,
        differs_because=said["differs_because"],
        reason=reason,
    )


def _reduced(view: CellView, figures: list[tuple[int | None, float]], how: str) -> float | None:
    """One number for the steps of the window: the mean of what was said, its sum or its largest; its sum over the steps
    (`per_step`, for a framework that speaks once for several); or what a running total grew by (`increase`), which is
    0 before the first step, and may be missing in a step that adds nothing to it.
    """
    steps = set(view.updates["step"].tolist())
    inside = [value for step, value in figures if step in steps]
    if not inside:
        return None
    if how == "increase":
        before = [value for step, value in figures if step is not None and step < min(steps)]
        return inside[-1] - (before[-1] if before else 0.0)
    if how == "max":
        return max(inside)
    return sum(inside) / {"mean": len(inside), "sum": 1, "per_step": len(steps)}[how]


def _ours(view: CellView, measures: Mapping[str, Measure], name: str | None) -> Value | None:
    """The figure of ours of that name; None where there is no such figure, or the cell has no such member of it."""
    if name is None or not (named := NAME.fullmatch(name)):
        return None
    values = measures[named["tag"]].values(view)
    return next((value for value in values if value.variant == (named["variant"] or "")), None)
