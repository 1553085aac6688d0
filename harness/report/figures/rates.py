"""Figures of rows: throughput with intervals, and headroom under the measured limits of the machine."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure as Canvas

from harness.report import format as fmt
from harness.report.figures import style
from harness.report.figures.data import Missing, TrackData

RATES = (
    "input_tokens_per_second_in_stage",
    "decode_tokens_per_second",
    "training_tokens_per_second_in_stage",
    "output_tokens_per_second",
    "training_tokens_per_second",
    "informative_groups_per_second",
)
HEADROOM = ("headroom_prefill", "headroom_decode", "headroom_train", "headroom_sync")


def throughput(data: TrackData) -> Canvas | Missing:
    """One panel a rate: median over the repeats with its interval, and each repeat as a small point."""
    panels = [tag for tag in RATES if any(data.row(column, tag) for column in data.columns)]
    if not panels:
        return Missing("no throughput was measured in any cell")
    rows = -(-len(panels) // 3)
    figure = style.canvas(height=0.5 + rows * (0.75 + 0.28 * len(data.columns)))
    axes = style.panels(figure, rows, 3, sharey=True)
    for axis, tag in zip(axes, panels, strict=False):
        _dots(axis, data, tag)
        axis.set_title(data.model.definitions[tag].title, fontweight="normal", fontsize=8)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    return figure


def _dots(axis: Any, data: TrackData, measure: str) -> None:
    for place, column in enumerate(data.columns):
        row, look = data.row(column, measure), data.look(column)
        if row is None or row.value is None:
            axis.text(0.0, place, " not measured", va="center", fontsize=7, color="#666666")
            continue
        repeats = [value for value in row.repeats if value is not None]
        axis.scatter(repeats, [place + 0.22] * len(repeats), s=5, color=look.color, alpha=0.45, linewidths=0)
        if row.low is not None and row.high is not None:
            axis.plot([row.low, row.high], [place, place], color=look.color, linewidth=2.2, solid_capstyle="butt")
        axis.plot(row.value, place, marker=look.marker, color=look.color, markersize=5, markeredgecolor="white")
        axis.annotate(fmt.number(row.value), (row.value, place - 0.2), ha="center", va="bottom", fontsize=7)
    axis.set_ylim(len(data.columns) - 0.45, -0.75)
    axis.set_yticks(range(len(data.columns)), [data.look(column).label for column in data.columns])
    right = axis.get_xlim()[1] * 1.12
    axis.set_xlim(-0.06 * right, right)
    axis.grid(visible=False, axis="y")


def headroom(data: TrackData) -> Canvas | Missing:
    """Roofline time over the time taken, by stage; 100 % is the limit measured on the same machine in the same run."""
    kept = [tag for tag in HEADROOM if any(data.row(column, tag) for column in data.columns)]
    if not kept:
        reasons = {row.reason for row in data.model.rows if row.measure in HEADROOM and row.track == data.track}
        return Missing("; ".join(sorted(filter(None, reasons))) or "no stage time was measured")
    figure = style.canvas(height=0.9 + 0.3 * len(kept) * max(1, len(data.columns)))
    axis = figure.subplots()
    for number, column in enumerate(data.columns):
        _bars(axis, data, column, number, kept)
    axis.axvline(100, color="#333333", linewidth=1.0)
    axis.set_yticks(range(len(kept)), [data.model.definitions[tag].title.split(",")[0] for tag in kept])
    axis.set_ylim(len(kept) - 0.45, -0.55)
    axis.set_xlim(0, max(108.0, axis.get_xlim()[1]))
    axis.set_xlabel("share of the roofline, %")
    axis.grid(visible=False, axis="y")
    labels = [data.look(column).label for column in data.columns]
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=style.legend_columns(labels))
    return figure


def _bars(axis: Any, data: TrackData, column: style.Column, number: int, tags: Sequence[str]) -> None:
    look, height = data.look(column), 0.8 / len(data.columns)
    axis.barh(0, 0, color=look.color, label=look.label)
    for place, tag in enumerate(tags):
        row = data.row(column, tag)
        at = place - 0.4 + height * (number + 0.5)
        if row is None or row.value is None:
            axis.text(1, at, f"{look.label}: not measured", va="center", fontsize=7, color="#666666")
            continue
        axis.barh(at, 100 * row.value, height * 0.86, color=look.color)
        if row.low is not None and row.high is not None:
            axis.plot([100 * row.low, 100 * row.high], [at, at], color="#222222", linewidth=1.2)
        where = (100 * (row.high or row.value), at)
        text = f"{fmt.number(100 * row.value)} %"
        axis.annotate(text, where, xytext=(4, 0), textcoords="offset points", va="center", fontsize=7)
