"""How figures look: one colour an adapter and one a stage, readable without colour vision, on white."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import seaborn as sns
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure as Canvas

ADAPTER_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5195", "#333333")
"""Okabe and Ito's palette (2008), the yellow left out: it is too light on white."""
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")
LIGHTEST = 0.66
"""Of white in a colour, at most."""
LAYOUT_DASHES = ("-", "--", ":", "-.")
STAGE_COLORS = {
    "startup": "#E5E5E5",
    "prompt_prep": "#BDBDBD",
    "queue_wait": "#F0E9D2",
    "prefill": "#9ECAE9",
    "decode": "#2171B5",
    "generate": "#2171B5",
    "verifier": "#F2CC5C",
    "batch_assembly": "#8C8C8C",
    "logprob_recompute": "#F7B58C",
    "forward_backward": "#D55E00",
    "optimizer_step": "#8C3A00",
    "weight_sync": "#009E73",
    "checkpoint": "#AA4499",
    "restore": "#CC79A7",
    "observation": "#4D4D4D",
    "unattributed": "#FFFFFF",
}
PHASE_COLORS = {"rollout": "#2171B5", "transition": "#8C8C8C", "training": "#D55E00", "synchronisation": "#009E73"}
LIMIT_COLORS = {
    "records": "#D6E6F2",
    "tokens": "#F6DCCB",
    "bytes": "#CFEBDF",
    "age_s": "#F5E6C4",
    "lag": "#EBD5E2",
    "lag_bound": "#E9E9E9",
}
"""What closed admission of new work; light, as they lie behind a line."""
WIDTH, HEIGHT = 6.4, 3.4
LEGEND_CHARACTERS = 100
"""In a figure's width; a key and its gap take as much as 7."""
SETTINGS: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.edgecolor": "#8a8a8a",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "rlaxes",
}
Column = tuple[str, str]


@contextmanager
def styled() -> Iterator[None]:
    """The settings of all figures, for as long as they are drawn; no display is needed."""
    with mpl.rc_context(), sns.axes_style("whitegrid"):
        mpl.rcParams.update(SETTINGS)
        yield


def canvas(width: float = WIDTH, height: float = HEIGHT) -> Canvas:
    """An empty figure, apart from pyplot's global state."""
    return Canvas(figsize=(width, height), layout="constrained")


def panels(figure: Canvas, rows: int, columns: int = 1, **options: Any) -> list[Any]:
    """Axes in reading order; matplotlib's own types do not say what is in the array."""
    grid: Any = figure.subplots(rows, columns, squeeze=False, **options)
    return list(grid.flat)


def legend_columns(labels: Sequence[str]) -> int:
    """How many entries of a legend stand side by side in a figure's width."""
    return max(1, min(4, len(labels), LEGEND_CHARACTERS // (max(map(len, labels), default=0) + 7)))


def adapter_color(name: str, names: Sequence[str]) -> str:
    """The colour of an adapter: its place in the order of names, so that a reader learns it once."""
    return ADAPTER_COLORS[sorted(names).index(name) % len(ADAPTER_COLORS)]


def adapter_marker(name: str, names: Sequence[str]) -> str:
    """A shape for each adapter, for readers and printers without colours."""
    return MARKERS[sorted(names).index(name) % len(MARKERS)]


def layout_tint(color: str, layout: str, layouts: Sequence[str]) -> str:
    """The colour of an adapter in one of its layouts: its own in the first by name, then lighter and lighter."""
    place = sorted(set(layouts)).index(layout)
    white = LIGHTEST * place / max(len(LAYOUT_DASHES) - 1, len(set(layouts)) - 1)
    red, green, blue = (part + (1 - part) * white for part in to_rgb(color))
    return to_hex((red, green, blue))


def layout_dash(layout: str, layouts: Sequence[str]) -> str:
    """A line style for each layout."""
    return LAYOUT_DASHES[sorted(set(layouts)).index(layout) % len(LAYOUT_DASHES)]


def label(column: Column, columns: Sequence[Column]) -> str:
    """An adapter's name, with the layout where the run has more than one."""
    adapter, layout = column
    several = len({other for _, other in columns}) > 1
    return f"{adapter} · {layout.replace('_', ' ')}" if several else adapter
