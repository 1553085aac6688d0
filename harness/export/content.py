"""The neutral form of a run: what every tool is given, and nothing that a tool has to compute.

It says what the report says, no more: the figures are those of `report.json`. A figure without a value stays out of the
numbers and has its reason; it is never 0.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal

from harness.compare.rows import Row
from harness.export.names import spelt
from harness.export.series import Series, stepped_series
from harness.measure.values import json_number
from harness.report.format import number
from harness.report.grades import evidence_of_report
from harness.report.model import ReportModel

SCHEMA = 1
PUBLISHED = "a published table has no series; export the run itself"
FOREIGN = "it was recorded elsewhere: its curves are in its own logs"
Parameter = str | int | float | bool
Column = tuple[str, str, str]


@dataclass(frozen=True)
class Figure:
    """A figure of one run of the tool.

    Attributes:
        name: as the tools show it: `topic/measure`, or `topic/measure.variant`; letters, digits and `_.-/` only.
        value: in `unit`; None where there is none, with `reason`. It may be infinite.
        low, high: the interval of a median over repeats; None for a single cell, and where there is none.
        n: how many repeats it rests on; 1 for a single cell.
        state: as in a report's row.
    """

    name: str
    value: float | None
    unit: str
    low: float | None
    high: float | None
    n: int
    state: str
    reason: str | None

    @property
    def numbers(self) -> dict[str, float]:
        """What there is of value and interval, by name; intervals are together under a name of their own, since a tool
        draws a chart of each."""
        bound = f"interval/{self.name.replace('/', '.')}"
        ends = {self.name: self.value, f"{bound}.low": self.low, f"{bound}.high": self.high}
        return {name: value for name, value in ends.items() if value is not None}


@dataclass
class Run:
    """What becomes one run in a tool: a cell, or the medians of a column (`harness.report.measured.column_of`).

    Attributes:
        group: the column that it belongs to; of a column, itself.
        repeat: None for a column.
        started: seconds since 1970; None where it never was.
        missing: why a series is not there, by its name.
        judged: of a column, in words what it was judged to be against each baseline, by the name of the figure.
    """

    name: str
    kind: Literal["cell", "column"]
    group: str
    label: str
    layout: str
    track: str
    repeat: int | None
    status: str
    cause: str | None
    reason: str | None
    started: float | None
    wall_s: float | None
    parameters: dict[str, Parameter]
    figures: list[Figure]
    series: list[Series] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    judged: dict[str, str] = field(default_factory=dict)


@dataclass
class Content:
    """A run of rlaxes. `evidence` is the grade of all its figures (`harness.report.grades`), `created` seconds since
    1970; `definitions` are those of the figures by their name in the tools."""

    run_id: str
    title: str
    created: float
    evidence: str
    definitions: dict[str, dict[str, str]]
    runs: list[Run]

    def as_dict(self) -> dict[str, Any]:
        """For JSON, which has no infinity: an infinite number is a string that float() reads. Each figure has its
        `numbers` besides."""
        plain = asdict(self) | {"schema": SCHEMA}
        for run, told in zip(self.runs, plain["runs"], strict=True):
            for figure, said in zip(run.figures, told["figures"], strict=True):
                said |= {key: json_number(said[key]) for key in ("value", "low", "high")}
                said["numbers"] = {name: json_number(value) for name, value in figure.numbers.items()}
        return plain


def content_of(model: ReportModel) -> Content:
    """The neutral form of a report: first its columns, then its cells, each in the order of their names."""
    names = _names(model)
    runs = [_column(model, column, names) for column in _columns(model)]
    runs += [_cell(model, cell, names) for cell in _sorted_cells(model)]
    evidence = evidence_of_report(vars(model))
    return Content(model.run_id, model.title, _epoch(model.created), evidence, _definitions(model, names), runs)


def _names(model: ReportModel) -> dict[tuple[str, str], str]:
    """The name of each figure and variant in the tools; two that would be spelt alike are told apart by a number."""
    found: dict[tuple[str, str], str] = {}
    taken: dict[str, int] = {}
    for row in model.rows:
        if (row.measure, row.variant) in found:
            continue
        topic = model.definitions[row.measure].topic
        name = f"{spelt(topic)}/{spelt(row.measure)}" + (f".{spelt(row.variant)}" if row.variant else "")
        taken[name] = taken.get(name, 0) + 1
        found[row.measure, row.variant] = name if taken[name] == 1 else f"{name}--{taken[name]}"
    return found


def _definitions(model: ReportModel, names: Mapping[tuple[str, str], str]) -> dict[str, dict[str, str]]:
    units = {(row.measure, row.variant): (row.unit, row.direction) for row in model.rows}
    found = {}
    for (measure, variant), name in names.items():
        said = model.definitions[measure]
        unit, direction = units[measure, variant]
        told = {"title": said.title, "variant": variant, "unit": unit, "direction": direction}
        found[name] = told | {"definition": said.definition, "measure": measure, "source": said.source}
    return found


def _columns(model: ReportModel) -> list[Column]:
    return [(*column, track) for track in model.tracks for column in model.columns(track)]


def _of_column(model: ReportModel, column: Column) -> list[dict[str, Any]]:
    own = [cell for cell in model.cells if (cell["adapter"], cell["layout"], cell["track"]) == column]
    return sorted(own, key=lambda cell: cell["repeat"])


def _sorted_cells(model: ReportModel) -> Iterator[dict[str, Any]]:
    for column in _columns(model):
        yield from _of_column(model, column)


def _rows(model: ReportModel, column: Column) -> list[Row]:
    return [row for row in model.rows if (row.adapter, row.layout, row.track) == column]


def _column(model: ReportModel, column: Column, names: Mapping[tuple[str, str], str]) -> Run:
    cells = _of_column(model, column)
    well = sum(cell["status"] == "ok" for cell in cells)
    figures = [
        Figure(names[r.measure, r.variant], r.value, r.unit, r.low, r.high, r.n, r.state, r.reason)
        for r in _rows(model, column)
    ]
    reasons = dict.fromkeys(cell["reason"] for cell in cells if cell["reason"])
    starts = [_epoch(cell["started"]) for cell in cells if cell.get("started") and cell["status"] != "not_run"]
    return Run(
        name=".".join(column),
        kind="column",
        group=".".join(column),
        label=column[0],
        layout=column[1],
        track=column[2],
        repeat=None,
        status="ok" if well else cells[0]["status"],
        cause=None if well else cells[0]["cause"],
        reason="; ".join(reasons) or None,
        started=min(starts, default=None),
        wall_s=None,
        parameters=_parameters(model, cells[0]) | {"repeats": len(cells), "repeats_ok": well},
        figures=figures,
        judged=_judged(model, column, names),
    )


def _judged(model: ReportModel, column: Column, names: Mapping[tuple[str, str], str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in model.judgements:
        name = names.get((one.measure, one.variant))
        if (one.adapter, one.layout, one.track) != column or name is None:
            continue
        ratio = f" ({number(one.effect)}× [{number(one.low)}, {number(one.high)}])" if one.effect is not None else ""
        told = f"{one.state} against {one.baseline}{ratio}" + (f": {one.reason}" if one.reason else "")
        found[name] = f"{found[name]}; {told}" if name in found else told
    return found


def _cell(model: ReportModel, cell: dict[str, Any], names: Mapping[tuple[str, str], str]) -> Run:
    column = (cell["adapter"], cell["layout"], cell["track"])
    series, missing = stepped_series(model.series.get(cell["cell_id"], {}))
    if cell["cell_id"] not in model.series:
        missing = {"series": cell["reason"] or (FOREIGN if model.ingested else PUBLISHED)}
    return Run(
        name=cell["cell_id"],
        kind="cell",
        group=".".join(column),
        label=column[0],
        layout=column[1],
        track=column[2],
        repeat=cell["repeat"],
        status=cell["status"],
        cause=cell["cause"],
        reason=cell["reason"],
        started=_epoch(cell["started"]) if cell.get("started") and cell["status"] != "not_run" else None,
        wall_s=cell["wall_s"],
        parameters=_parameters(model, cell),
        figures=[_of_repeat(row, cell, names) for row in _rows(model, column)],
        series=series,
        missing=missing,
    )


def _of_repeat(row: Row, cell: Mapping[str, Any], names: Mapping[tuple[str, str], str]) -> Figure:
    """The figure of one repeat; where it has none, for the cell's reason or for that of the row."""
    name = names[row.measure, row.variant]
    repeat = cell["repeat"]
    value = row.repeats[repeat] if repeat < len(row.repeats) else None
    if value is not None:
        return Figure(name, value, row.unit, None, None, 1, row.state, row.reason)
    if cell["status"] != "ok":
        state = "not run" if cell["status"] == "not_run" else "failed"
        return Figure(name, None, row.unit, None, None, 0, state, cell["reason"] or row.reason or state)
    state = row.state if row.value is None else "not measured"
    return Figure(name, None, row.unit, None, None, 0, state, row.reason or "this repeat has no value of it")


def _parameters(model: ReportModel, cell: Mapping[str, Any]) -> dict[str, Parameter]:
    """What was set and what it ran on: the resolved configuration of the cell, versions, hashes, the machine."""
    provenance = model.provenance
    config = (provenance.get("configs") or {}).get(cell["cell_id"].rsplit(".r", 1)[0]) or {}
    system = cell.get("system") or cell["adapter"]
    told: dict[str, Any] = {
        "label": cell["adapter"],
        "layout": cell["layout"],
        "track": cell["track"],
        "run_id": model.run_id,
        "evidence": evidence_of_report(vars(model)),
        "profile": model.profile,
        "fault": cell.get("fault"),
        "version": (model.adapters.get(system) or {}).get("version"),
        "settings_hash": config.get("hash"),
        "lock_hash": (provenance.get("locks") or {}).get(system),
        "bundle_hash": (provenance.get("bundle") or {}).get("hash"),
        "correction": provenance.get("corrections"),
        "rlaxes": provenance.get("rlaxes"),
        "machine": {key: value for key, value in model.machine.items() if key != "profile"},
        "settings": {key: value for key, value in (config.get("resolved") or {}).items() if key != "output"},
    }
    return dict(_flat("", told))


def _flat(prefix: str, content: Mapping[str, Any]) -> Iterator[tuple[str, Parameter]]:
    """Leaves by their dotted name; what was left open (null) is no parameter, a list is one text."""
    for key, value in content.items():
        name = f"{prefix}{spelt(str(key))}"
        if isinstance(value, Mapping):
            yield from _flat(f"{name}.", value)
        elif isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
            yield name, value
        elif value is not None:
            yield name, str(value)


def _epoch(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
