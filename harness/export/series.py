"""The series of a cell that have a step: what a tool draws as a curve.

Those of `harness.measure.series` that have none (`timeline`, `lag`, `log_ratio`, `lengths`) are histograms and a
picture: the timeline goes to Perfetto, all of them to CSV.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness.export.names import spelt

Axis = Literal["step", "samples", "milliseconds"]


@dataclass(frozen=True)
class Series:
    """Curves over one axis.

    Attributes:
        axis: `step` is the optimizer step; `samples` the completions generated so far, one point a generated batch;
            `milliseconds` from the start of the measured window, negative in the warm-up.
        x: the place of each point, in the order of the ledger.
        columns: by name, a value a point; None where the ledger has none there.
    """

    axis: Axis
    x: list[int]
    columns: dict[str, list[float | None]]


def stepped_series(series: Mapping[str, Mapping[str, Any]]) -> tuple[list[Series], dict[str, str]]:
    """The curves of a cell (see `harness.measure.series.cell_series`), and why one is not there by its name there."""
    missing = {name: str(one["reason"]) for name, one in series.items() if "reason" in one}
    there = {name: one for name, one in series.items() if "reason" not in one}
    found = []
    for name, prefix in (("updates", "per_step/"), ("stages", "per_step/seconds.")):
        if one := there.get(name):
            columns = {prefix + key: list(column) for key, column in one.items() if key != "step"}
            found.append(Series("step", [int(step) for step in one["step"]], columns))
    for name in ("reward", "length"):
        if one := there.get(name):
            columns = {f"per_batch/{name}.{key}": list(one[key]) for key in ("mean", "p95")}
            found.append(Series("samples", [int(count) for count in one["samples"]], columns))
    if one := there.get("queue"):
        columns = {f"over_time/queue.{key}": list(one[key]) for key in ("records", "tokens")}
        found.append(Series("milliseconds", _milliseconds(one["t"]), columns))
    if one := there.get("memory"):
        found += _memory(one)
    return found, missing


def _milliseconds(seconds: Sequence[float]) -> list[int]:
    return [round(1000 * t) for t in seconds]


def _memory(series: Mapping[str, Any]) -> list[Series]:
    """A curve for each component and source of memory, each with the points of its own."""
    places: dict[str, list[int]] = {}
    for place, (component, source) in enumerate(zip(series["component"], series["source"], strict=True)):
        places.setdefault(f"over_time/memory_bytes.{spelt(str(component))}.{spelt(source)}", []).append(place)
    times = _milliseconds(series["t"])
    return [
        Series("milliseconds", [times[p] for p in own], {name: [series["bytes"][p] for p in own]})
        for name, own in sorted(places.items())
    ]
