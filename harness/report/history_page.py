"""A history as one self-contained HTML page, with a picture of every line that has more than one point."""

import base64
import io
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from matplotlib.figure import Figure as Canvas

from harness.compare.change_points import ALARM, LEAST_POINTS, LEAST_SEGMENT
from harness.report import format as fmt
from harness.report.figures import style
from harness.report.framework_map import MapEntry
from harness.report.history import History
from harness.report.history_lines import Line
from harness.report.history_words import head_of, moved_words, point_words, title_of, verdict_of
from harness.report.hook_facts import HookFact
from harness.report.html import environment
from harness.report.map_pages import said_before

MOST_DAYS = 12
"""Dates that are written below a picture."""


def history_html(
    history: History, hooks: Sequence[HookFact], axes: Sequence[MapEntry], keys: Sequence[Mapping[str, Any]]
) -> str:
    """The page.

    Args:
        keys: changes of native keys: `framework`, `version`, `line`, `source`, `date`.
    """
    blocks = [_block(head, list(lines)) for head, lines in groupby(history.lines, key=head_of)]
    content: dict[str, Any] = {"blocks": blocks}
    content |= {"history": history, "hooks": hooks, "axes": axes, "keys": keys}
    content |= {"title_of": title_of, "point_words": point_words, "moved_words": moved_words}
    content |= {"picture_of": _picture, "verdict_of": verdict_of, "said_before": said_before}
    content |= {"least_points": LEAST_POINTS, "least_segment": LEAST_SEGMENT, "alarm": ALARM}
    with style.styled():
        return environment().get_template("history.html.j2").render(**content)


def _block(head: str, lines: Sequence[Line]) -> dict[str, Any]:
    """Lines of the same cells: with the runs that they come from, and what was corrected of them."""
    points = [point for line in lines for point in line.points]
    runs = {point.run: point for point in sorted(points, key=lambda point: point.date)}
    remarks = list(dict.fromkeys(remark for point in points for remark in point.corrections))
    return {"head": head, "lines": lines, "begins": lines[0].begins, "runs": runs, "remarks": remarks}


def _picture(line: Line) -> str:
    """The line as a data URI: points with their intervals, in the order of time, and where the level moved."""
    figure = style.canvas(height=1.9)
    _draw(figure, line)
    file = io.BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    return f"data:image/svg+xml;base64,{base64.b64encode(file.getvalue()).decode('ascii')}"


def _draw(figure: Canvas, line: Line) -> None:
    axis: Any = figure.subplots()
    divisor, unit = fmt.scale(line.unit, max(abs(point.value) for point in line.points))
    values = [point.value / divisor for point in line.points]
    runs = [point.run for point in line.points]
    moved = [runs.index(change.run_after) for change in line.moved]
    for start, end in pairwise([0, *moved, len(values)]):
        axis.plot(range(start, end), values[start:end], color=style.ADAPTER_COLORS[0], lw=0.8, marker="o", markersize=4)
    for place, point in enumerate(line.points):
        if point.low is not None and point.high is not None:
            ends = [point.low / divisor, point.high / divisor]
            axis.plot([place, place], ends, color=style.ADAPTER_COLORS[0], linewidth=2, alpha=0.4)
    for start in moved:
        axis.axvline(start - 0.5, color=style.ADAPTER_COLORS[1], linewidth=1.2, linestyle="--")
    step = -(-len(runs) // MOST_DAYS)
    axis.set_xticks(range(0, len(runs), step), [point.date[5:10] for point in line.points][::step])
    axis.set_ylabel(unit)
    axis.grid(visible=False, axis="x")
