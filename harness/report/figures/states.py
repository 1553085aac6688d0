"""Figures of the state of a run: memory over its phases."""

from itertools import cycle
from typing import Any

from matplotlib.figure import Figure as Canvas

from harness.report import format as fmt
from harness.report.figures import style
from harness.report.figures.data import Missing, TrackData

GIB = 2**30
Point = dict[str, Any]


def memory(data: TrackData) -> Canvas | Missing:
    """Memory over a cell's life: the line is the process tree (or the device), a point a reading at the end of a stage.
    First repeat; the measured window begins at 0."""
    found = list(data.first("memory"))
    if not found:
        return data.missing("memory")
    figure = style.canvas(height=0.75 + 1.35 * len(found))
    axes = style.panels(figure, len(found), sharex=True, sharey=True)
    for axis, (column, series) in zip(axes, found, strict=True):
        look = data.look(column)
        names = ("t", "bytes", "phase", "source", "component")
        points = [dict(zip(names, values, strict=True)) for values in zip(*(series[n] for n in names), strict=True)]
        _whole(axis, points, look.color)
        _by_phase(axis, points)
        axis.set_title(look.label, color=look.ink)
        axis.set_ylabel("GiB")
        axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7, handlelength=1.2)
    axes[-1].set_ylim(bottom=0)
    axes[-1].set_xlabel("seconds from the start of the measured window")
    return figure


def _whole(axis: Any, points: list[Point], color: str) -> None:
    """The tree of processes and the devices; of a device, what the driver says and what the allocator holds."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for point in points:
        if point["component"] != "process":
            name = point["component"].replace(":", " ").replace("tree", "process tree")
            lines.setdefault(f"{name}, {point['source']}", []).append((point["t"], point["bytes"] / GIB))
    for dash, (name, line) in zip(cycle(style.LAYOUT_DASHES), sorted(lines.items()), strict=False):
        axis.plot(*zip(*sorted(line), strict=True), color=color, linewidth=1.2, linestyle=dash, label=fmt.words(name))


def _by_phase(axis: Any, points: list[Point]) -> None:
    """Readings of the working process, in the colour of the phase."""
    own = [point for point in points if point["component"] == "process"]
    for phase in dict.fromkeys(point["phase"] for point in own):
        here = [point for point in own if point["phase"] == phase]
        axis.scatter(
            [point["t"] for point in here],
            [point["bytes"] / GIB for point in here],
            s=12,
            color=style.PHASE_COLORS.get(phase, style.STAGE_COLORS.get(phase, "#999999")),
            edgecolors="#444444",
            linewidths=0.3,
            label=fmt.words(phase or "between stages"),
            zorder=3,
        )
