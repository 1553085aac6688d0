"""Figures of the policy: lag, log-ratios by completion length, reward over samples."""

from statistics import median

from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from harness.report.figures import style
from harness.report.figures.data import Missing, Series, TrackData


def lag(data: TrackData) -> Canvas | Missing:
    """Share of trained records at each policy lag, over all repeats."""
    counts = {column: _summed(data.series(column, "lag")) for column in data.columns}
    counts = {column: one for column, one in counts.items() if one}
    if not counts:
        return data.missing("lag")
    figure = style.canvas(height=2.4 + 0.2 * len(counts))
    axis = figure.subplots()
    width = 0.8 / len(counts)
    for number, (column, one) in enumerate(counts.items()):
        look, total = data.look(column), sum(one.values())
        places = [value - 0.4 + width * (number + 0.5) for value in sorted(one)]
        shares = [100 * one[value] / total for value in sorted(one)]
        axis.bar(places, shares, width * 0.92, color=look.color, label=f"{look.label}, {total:,} records")
    axis.set_xlabel("policy lag at the optimizer step that consumes the record, updates")
    axis.set_ylabel("trained records, %")
    axis.set_ylim(0, 104)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axis.grid(visible=False, axis="x")
    axis.set_xlim(-0.6, max(3.6, max(value for one in counts.values() for value in one) + 0.6))
    labels = axis.get_legend_handles_labels()[1]
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=style.legend_columns(labels))
    return figure


def _summed(histograms: list[Series]) -> dict[int, int]:
    total: dict[int, int] = {}
    for histogram in histograms:
        for value, count in zip(histogram["lag"], histogram["records"], strict=True):
            total[value] = total.get(value, 0) + count
    return total


def log_ratios(data: TrackData) -> Canvas | Missing:
    """Mean log ratio of a completion's tokens, by its length: the median, and the range from 5 % to 95 % of the
    completions. First repeat."""
    found = list(data.first("log_ratio"))
    if not found:
        return data.missing("log_ratio")
    figure = style.canvas(height=2.9)
    axis = figure.subplots()
    labels = {low: name for _, one in found for low, name in zip(one["low"], one["label"], strict=True)}
    places = {low: place for place, low in enumerate(sorted(labels))}
    for number, (column, one) in enumerate(found):
        look, shift = data.look(column), 0.5 * ((number + 0.5) / len(found) - 0.5)
        x = [places[low] + shift for low in one["low"]]
        axis.vlines(x, one["p05"], one["p95"], color=look.color, linewidth=2.2, alpha=0.55)
        axis.plot(x, one["p50"], color=look.color, marker=look.marker, markersize=5, linestyle="none", label=look.label)
    axis.axhline(0, color="#555555", linewidth=0.8)
    axis.set_xticks(range(len(places)), [labels[low].replace("-", "–") for low in sorted(labels)])
    axis.set_xlim(-0.6, len(places) - 0.4)
    axis.set_xlabel("completion length, tokens")
    axis.set_ylabel("log ratio a token, nats")
    axis.grid(visible=False, axis="x")
    axis.legend(loc="best")
    return figure


def reward(data: TrackData) -> Canvas | Missing:
    """Mean reward of each generated batch over the samples drawn so far: thin a repeat, thick the median."""
    if not any(data.series(column, "reward") for column in data.columns):
        return data.missing("reward")
    figure = style.canvas(height=2.9)
    axis = figure.subplots()
    for column in data.columns:
        curves = data.series(column, "reward")
        look = data.look(column)
        for curve in curves:
            axis.plot(*_points(curve), color=look.color, alpha=0.28, linewidth=0.7)
        if curves:
            label = f"{look.label}, {len(curves)} repeat{'s' if len(curves) > 1 else ''}"
            axis.plot(*_median(curves), color=look.color, linewidth=2, linestyle=look.dash, label=label)
    axis.set_xlabel("completions sampled so far")
    axis.set_ylabel("mean reward of the batch")
    axis.legend(loc="best")
    return figure


def _points(curve: Series) -> tuple[list[int], list[float]]:
    kept = [(samples, mean) for samples, mean in zip(curve["samples"], curve["mean"], strict=True) if mean is not None]
    return [samples for samples, _ in kept], [mean for _, mean in kept]


def _median(curves: list[Series]) -> tuple[list[int], list[float]]:
    by_samples: dict[int, list[float]] = {}
    for curve in curves:
        for samples, value in zip(*_points(curve), strict=True):
            by_samples.setdefault(samples, []).append(value)
    return sorted(by_samples), [median(by_samples[samples]) for samples in sorted(by_samples)]
