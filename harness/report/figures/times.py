"""Figures of time: what each step is made of, and the timeline of one step."""

from typing import Any

from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch

from harness.report import format as fmt
from harness.report.figures import style
from harness.report.figures.data import Missing, Series, TrackData

UNATTRIBUTED = "unattributed"
HATCH = "////"


def composition(data: TrackData) -> Canvas | Missing:
    """Seconds of each optimizer step by stage, of the first repeat; what no span covers is hatched."""
    found = list(data.first("stages"))
    if not found:
        return data.missing("stages")
    figure = style.canvas(height=0.9 + 1.45 * len(found))
    axes = style.panels(figure, len(found), sharex=True, sharey=True)
    used: list[str] = []
    for axis, (column, series) in zip(axes, found, strict=True):
        used += [stage for stage in _stack(axis, series) if stage not in used]
        axis.set_title(data.look(column).label, color=data.look(column).ink)
        axis.set_ylabel("s a step")
        axis.grid(visible=False, axis="x")
    axes[-1].set_xlabel("optimizer step")
    _legend(figure, used)
    return figure


def _stack(axis: Any, series: Series) -> list[str]:
    steps, bottom = series["step"], [0.0] * len(series["step"])
    stages = [stage for stage in style.STAGE_COLORS if any(series.get(stage, ()))]
    for stage in stages:
        seconds = series[stage]
        open_ = stage == UNATTRIBUTED
        edge, hatch = ("#777777", HATCH) if open_ else ("none", None)
        color = style.STAGE_COLORS[stage]
        axis.bar(steps, seconds, 0.85, bottom, color=color, edgecolor=edge, hatch=hatch, linewidth=0.4 if open_ else 0)
        bottom = [low + more for low, more in zip(bottom, seconds, strict=True)]
    axis.margins(x=0.01)
    return stages


def _legend(figure: Canvas, stages: list[str]) -> None:
    """Stages in the order of a step."""
    patches = [
        Patch(
            facecolor=style.STAGE_COLORS[stage],
            edgecolor="#777777" if stage == UNATTRIBUTED else "none",
            hatch=HATCH if stage == UNATTRIBUTED else None,
            label=fmt.words(stage),
        )
        for stage in style.STAGE_COLORS
        if stage in stages
    ]
    figure.legend(handles=patches, loc="outside lower center", ncols=5, handlelength=1.2, columnspacing=1.2)


def timeline(data: TrackData) -> Canvas | Missing:
    """The last generated batch and the steps that consume it, on one time axis: a bar a span, a row a stage; the sum of
    a row beside it. First repeat."""
    found = list(data.first("timeline"))
    if not found:
        return data.missing("timeline")
    rows = [[stage for stage in style.STAGE_COLORS if stage in series["stage"]] for _, series in found]
    heights = [max(2, len(names)) for names in rows]
    figure = style.canvas(height=0.8 + 0.2 * sum(heights) + 0.3 * len(found))
    axes = style.panels(figure, len(found), sharex=True, height_ratios=heights)
    last = 0.0
    for axis, (column, series), names in zip(axes, found, rows, strict=True):
        last = max(last, _gantt(axis, series, names))
        axis.set_title(data.look(column).label, color=data.look(column).ink)
    axes[-1].set_xlim(0, 1.1 * last)
    axes[-1].set_xlabel("seconds since the generation of the batch began")
    return figure


def _gantt(axis: Any, series: Series, names: list[str]) -> float:
    """The bars of one column; the time of the last end."""
    start = min(series["start"])
    for at, name in enumerate(names):
        bars = [
            (begin - start, end - begin)
            for stage, begin, end in zip(series["stage"], series["start"], series["end"], strict=True)
            if stage == name
        ]
        axis.broken_barh(bars, (at - 0.36, 0.72), facecolors=style.STAGE_COLORS[name], edgecolor="white", linewidth=0.2)
        total, end = sum(width for _, width in bars), max(begin + width for begin, width in bars)
        text = fmt.quantity(total, "s")
        axis.annotate(text, (end, at), xytext=(3, 0), textcoords="offset points", va="center", fontsize=6.5)
    axis.set_yticks(range(len(names)), [fmt.words(name) for name in names])
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.grid(visible=False, axis="y")
    return float(max(series["end"]) - start)
