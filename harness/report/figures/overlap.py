"""Figures of asynchrony: the queue over time, and what a deeper one costs."""

from typing import Any

from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from harness.report import format as fmt
from harness.report.figures import style
from harness.report.figures.data import Missing, Series, TrackData

COSTS = ("lag_p95", "ess_sequences_share", "clip_fraction", "dropped_share")
BOUND = "lag_bound"


def queue(data: TrackData) -> Canvas | Missing:
    """Policy tokens that wait between collectors and trainer, after each put, get and drop; shaded where a limit closed
    admission of new work. First repeat; the measured window begins at 0."""
    found = list(data.first("queue"))
    if not found:
        return data.missing("queue")
    figure = style.canvas(height=0.95 + 1.35 * len(found))
    axes = style.panels(figure, len(found), sharex=True)
    limits: list[str] = []
    for axis, (column, series) in zip(axes, found, strict=True):
        look = data.look(column)
        limits += [name for name in _closings(axis, series) if name not in limits]
        axis.step(series["t"], series["tokens"], where="post", color=look.color, linewidth=1.2)
        axis.set_title(look.label, color=look.ink)
        axis.set_ylabel("tokens")
        axis.set_ylim(bottom=0)
        axis.margins(x=0.01)
    axes[-1].set_xlabel("seconds from the start of the measured window")
    patches = [Patch(facecolor=style.LIMIT_COLORS[name], label=f"closed: {fmt.words(name)}") for name in limits]
    if patches:
        figure.legend(handles=patches, loc="outside lower center", ncols=4, handlelength=1.2)
    return figure


def _closings(axis: Any, series: Series) -> list[str]:
    """Shade the times of closed admission; the limits that there were."""
    for start, end, limit in zip(series["closed_from"], series["closed_to"], series["limit"], strict=True):
        axis.axvspan(start, end, color=style.LIMIT_COLORS[limit], linewidth=0)
    return list(dict.fromkeys(series["limit"]))


def cost_of_lag(data: TrackData) -> Canvas | Missing:
    """Lag, effective sample size, clipped tokens and dropped tokens of each layout, at the lag bound that it declares:
    median over the repeats with its interval. A deeper queue pays while these stay acceptable."""
    rows = {column: data.row(column, BOUND) for column in data.columns}
    bounds = {column: row.value for column, row in rows.items() if row is not None and row.value is not None}
    if len(set(bounds.values())) < 2:
        return Missing("no two layouts of this track declare different lag bounds")
    figure = style.canvas(height=3.6)
    axes = style.panels(figure, 2, 2, sharex=True)
    for axis, measure in zip(axes, COSTS, strict=True):
        tops = [_point(axis, data, column, measure, x) for column, x in _places(bounds).items()]
        definition = data.model.definitions.get(measure)
        axis.set_title(definition.title if definition else fmt.words(measure), fontweight="normal", fontsize=8)
        axis.set_ylabel(definition.unit if definition else "")
        axis.set_ylim(0, 1.15 * max(tops) or 1)
        axis.set_xlim(min(bounds.values()) - 0.5, max(bounds.values()) + 0.5)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axis in axes[2:]:
        axis.set_xlabel("declared lag bound, updates")
    looks = [data.look(column) for column in bounds]
    keys = [
        Line2D([], [], color=look.color, marker=look.marker, markersize=6, linestyle="none", label=look.label)
        for look in looks
    ]
    columns = style.legend_columns([look.label for look in looks])
    figure.legend(handles=keys, loc="outside lower center", ncols=columns, handlelength=1.2)
    return figure


def _places(bounds: dict[style.Column, float]) -> dict[style.Column, float]:
    """Where on the axis each column stands: columns with one bound side by side around it."""
    places: dict[style.Column, float] = {}
    for bound in set(bounds.values()):
        same = [column for column, own in bounds.items() if own == bound]
        places |= {column: bound + 0.12 * (place - (len(same) - 1) / 2) for place, column in enumerate(same)}
    return {column: places[column] for column in bounds}


def _point(axis: Any, data: TrackData, column: style.Column, measure: str, x: float) -> float:
    """A column's value with its interval, or that it has none; the top of what was drawn."""
    row, look = data.row(column, measure), data.look(column)
    if row is None or row.value is None:
        axis.text(x, 0, " not measured", rotation=90, ha="center", va="bottom", fontsize=7, color="#666666")
        return 0.0
    mark = {"color": look.color, "clip_on": False, "zorder": 3}
    if row.low is not None and row.high is not None:
        axis.plot([x, x], [row.low, row.high], linewidth=1.6, **mark)
    axis.plot([x], [row.value], marker=look.marker, markersize=6, linestyle="none", **mark)
    return row.value if row.high is None else max(row.value, row.high)
