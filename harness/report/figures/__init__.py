"""Draws a report's figures as SVG and PNG; one that has no data says why."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure as Canvas

from harness.report.figures import overlap, policy, rates, states, style, times
from harness.report.figures.data import Missing, TrackData
from harness.report.model import Figure, ReportModel

PNG_DPI = 160
Drawing = Callable[[TrackData], Canvas | Missing]


def _said(drawing: Drawing) -> str:
    """The docstring of a drawing, which is its caption, on one line."""
    return " ".join((drawing.__doc__ or "").split())


@dataclass(frozen=True)
class Plate:
    """A kind of figure: how it is drawn, and what a reader is told beside it."""

    name: str
    title: str
    caption: str
    draw: Drawing


PLATES: tuple[Plate, ...] = (
    Plate("throughput", "Throughput by stage", _said(rates.throughput), rates.throughput),
    Plate("step_composition", "What a step is made of", _said(times.composition), times.composition),
    Plate("timeline", "Timeline of one step", _said(times.timeline), times.timeline),
    Plate("memory", "Memory over phases", _said(states.memory), states.memory),
    Plate("lag", "Policy lag of what was trained on", _said(policy.lag), policy.lag),
    Plate("queue", "Queue depth and admission", _said(overlap.queue), overlap.queue),
    Plate("cost_of_lag", "What a deeper queue costs", _said(overlap.cost_of_lag), overlap.cost_of_lag),
    Plate("log_ratio", "Log ratio by completion length", _said(policy.log_ratios), policy.log_ratios),
    Plate("reward", "Reward over samples", _said(policy.reward), policy.reward),
    Plate("headroom", "Headroom under the roofline", _said(rates.headroom), rates.headroom),
)


def draw_figures(model: ReportModel, folder: Path) -> list[Figure]:
    """Draw every figure of every track into `folder`; where a run has one track, names carry none."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = []
    with style.styled():
        for track in model.tracks:
            data = TrackData(model, track)
            several = len(model.tracks) > 1
            figures += [_draw(plate, data, folder, several=several) for plate in PLATES]
    return figures


def _draw(plate: Plate, data: TrackData, folder: Path, *, several: bool) -> Figure:
    name = f"{plate.name}-{data.track}" if several else plate.name
    title = f"{plate.title}, track {data.track.replace('_', ' ')}" if several else plate.title
    drawn = plate.draw(data)
    if isinstance(drawn, Missing):
        return Figure(name, title, plate.caption, "", drawn.reason)
    drawn.savefig(folder / f"{name}.svg", metadata={"Date": None, "Title": title})
    drawn.set_layout_engine("none")  # it was laid out a moment ago, and that is most of the time
    drawn.savefig(folder / f"{name}.png", dpi=PNG_DPI, metadata={"Title": title})
    who = ", ".join(data.look(column).label for column in data.columns)
    return Figure(name, title, plate.caption, f"{title}: {who}. {plate.caption}", None)
