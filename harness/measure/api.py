"""What the rest of rlaxes asks of this room: the catalogue, and the figures and series of one cell."""

from typing import Any

from harness.contract import CellLedger
from harness.measure.figures import (
    completions,
    decoding,
    headroom,
    importance,
    lag,
    learning,
    learning_curve,
    losses,
    memory,
    mismatch,
    pipeline,
    publication,
    queue,
    recovery,
    restart_change,
    staleness,
    steadiness,
    stragglers,
    throughput,
    time,
)
from harness.measure.measure import REGISTERED, TOPICS, Measure
from harness.measure.self_report import SelfReport, self_report
from harness.measure.series import cell_series
from harness.measure.values import Value
from harness.measure.view import CellView, MeasureContext, Tables

ROOMS = (
    throughput,
    headroom,
    time,
    steadiness,
    pipeline,
    stragglers,
    queue,
    lag,
    staleness,
    importance,
    mismatch,
    publication,
    memory,
    learning,
    learning_curve,
    losses,
    completions,
    decoding,
    recovery,
    restart_change,
)
"""Importing a room registers its figures."""

__all__ = ["MeasureContext", "SelfReport", "catalogue", "measure_cell", "self_report_cell", "series_cell", "view_of"]


def catalogue() -> list[type[Measure]]:
    """Every measure, by topic, and within a topic in the order of their tags."""
    return sorted(REGISTERED.values(), key=lambda kind: (TOPICS.index(kind.topic), kind.tag))


def view_of(ledger: CellLedger, context: MeasureContext) -> CellView:
    """A cell as the measures see it. One view for `measure`, `series` and self report reads the ledger once.

    Args:
        ledger: a sealed ledger; of a torn one, what was flushed is measured.
    """
    return CellView(Tables(ledger), context)


def measure_cell(ledger: CellLedger | CellView, context: MeasureContext | None = None) -> list[Value]:
    """Every figure of a cell, in the order of the catalogue; null with a reason where the ledger cannot give it.

    Reads a ledger of any size in pieces: about 80 bytes a completion and 60 a trained row stay in memory.

    Args:
        ledger: a ledger and its `context`, or a view of both.
    """
    view = _view(ledger, context)
    return [value for kind in catalogue() for value in kind().values(view)]


def series_cell(ledger: CellLedger | CellView, context: MeasureContext | None = None) -> dict[str, Any]:
    """What plots are drawn from, as JSON-able data; see `harness.measure.series.cell_series` for its keys."""
    return cell_series(_view(ledger, context))


def self_report_cell(ledger: CellLedger | CellView, context: MeasureContext | None = None) -> list[SelfReport]:
    """The framework's own figures beside ours, one row for each definition in `context.native_definitions`."""
    return self_report(_view(ledger, context), {kind.tag: kind() for kind in catalogue()})


def _view(ledger: CellLedger | CellView, context: MeasureContext | None) -> CellView:
    if isinstance(ledger, CellView):
        return ledger
    if context is None:
        raise ValueError("a ledger is measured in a context")
    return view_of(ledger, context)
