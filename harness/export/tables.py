"""Tidy tables: CSV files and their data dictionary, a `datapackage.json` (Frictionless Data's Table Schema)."""

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness.export.content import Content
from harness.report.model import ReportModel
from harness.report.views import clean

Kind = Literal["string", "number", "integer", "boolean"]
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet would execute a text that begins so; it gets an apostrophe before it."""


@dataclass(frozen=True)
class Field:
    """A column: its name, what its values are, and what it means."""

    name: str
    kind: Kind
    meaning: str


@dataclass(frozen=True)
class CsvTable:
    """A table: what one row of it is, its columns, and its rows by the names of the columns."""

    name: str
    one_row: str
    fields: tuple[Field, ...]
    rows: Iterable[Mapping[str, Any]]


def _fields(spec: str) -> tuple[Field, ...]:
    """Parse lines of `name kind meaning`."""
    words = (line.split(None, 2) for line in spec.splitlines() if line)
    kinds: dict[str, Kind] = {"text": "string", "number": "number", "count": "integer", "truth": "boolean"}
    return tuple(Field(name, kinds[kind], meaning) for name, kind, meaning in words)


COLUMN = """
adapter text what was measured: the adapter's name, or its label in the run
layout text placement and synchrony
track text free, or fixed_length
"""
FIGURE = """
measure text the figure's tag; with variant it is one figure
variant text the member of a family: a stage, a phase, a bucket of lengths; empty where there is one
"""
CELLS = _fields(
    "cell_id text adapter.layout.track.rREPEAT"
    + COLUMN
    + """
repeat count from 0
status text ok, failed, torn, not_run
cause text whose fault a failure was: system, infrastructure, harness
reason text why it is not ok
wall_s number seconds from its start to its end, start-up included
started text when, ISO 8601
machine text which machine, where several ran parts of the run: a hash that names nobody
foreign_cores number cores that other processes used while it ran
settings_hash text of its resolved configuration
lock_hash text SHA-256 of the lock of its environment
"""
)
ROWS = _fields(
    COLUMN
    + FIGURE
    + """
value number the median over the repeats, in unit; empty where there is none, with a reason
unit text of value, low and high
direction text which way is better; none where the figure describes and does not judge
n count how many repeats it rests on
low number lower end of the median's interval
high number upper end of it
state text measured, as written (the framework's word), not measured, absent stage, not comparable, failed, not run
reason text why there is no value, or what to know beside one
ratio number to the reference loop on the same layout and track, paired by repeat
ratio_low number lower end of its 95 % interval
ratio_high number upper end of it
pairs count repeats that the ratio rests on
detectable number smallest relative change that these repeats could have shown
evidence text the ledger's columns behind it
"""
)
REPEATS = _fields(
    "cell_id text adapter.layout.track.rREPEAT"
    + COLUMN
    + "repeat count from 0"
    + FIGURE
    + """
value number of this repeat, in unit; empty where there is none, with a reason
unit text of value
state text as in rows.csv, of this repeat
reason text why there is no value, or what to know beside one
"""
)
SERIES = _fields("""
cell_id text adapter.layout.track.rREPEAT
series text its name in report.json (docs/ledger.md has the tables that it is made from)
point count place in the series, from 0
column text the name of the value
number number the value where it is a number; empty where the ledger has none there
text text the value where it is a text
""")
JUDGEMENTS = _fields(
    COLUMN
    + "baseline text the label that it was held against"
    + FIGURE
    + """
unit text of the figure
direction text which way is better
state text better, worse, no change, cannot tell, not comparable, failed, not run
effect number subject over baseline, geometric mean over repeats of the ratio of run totals
low number lower end of its 95 % interval
high number upper end of it
p number two-sided, that the ratio is 1
p_adjusted number after Holm over the gates of the comparison
margin number relative change up to which a difference counts as none
detectable number smallest relative change that would be found with a power of 80 %
pairs count repeats that count
paired truth whether the test is of pairs
reason text why the state is what it is, or what to know beside it
cause text of a subject that failed: system, infrastructure, harness
stage text of a step that got slower or faster: the stage that explains most of it
stage_seconds number by how much that stage's seconds an optimizer step grew
stage_share number the same over the growth of the step
"""
)
DEFINITIONS = _fields("""
measure text the figure's tag
title text its name in a report
unit text as the definition has it
topic text the question that it answers
definition text what is counted over what
source text the step of the module that defines it
""")


def write_tables(model: ReportModel, content: Content, folder: Path) -> None:
    """Write every table that the report has something for, and the dictionary."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = list(_tables(model, content))
    for table in tables:
        _write(table, folder / f"{table.name}.csv")
    described = json.dumps(_package(model, tables), indent=1, ensure_ascii=False)
    (folder / "datapackage.json").write_text(described + "\n", encoding="utf-8")


def _tables(model: ReportModel, content: Content) -> Iterator[CsvTable]:
    yield CsvTable("cells", "a cell that was planned", CELLS, _cells(model, content))
    yield CsvTable("rows", "a figure of a column, over its repeats", ROWS, [row.as_record() for row in model.rows])
    yield CsvTable("repeats", "a figure of a cell", REPEATS, _repeats(content))
    if model.series:
        yield CsvTable("series", "a value of a point of a series of a cell", SERIES, _points(model))
    if model.judgements:
        yield CsvTable("judgements", "a measure of a system held against a baseline", JUDGEMENTS, _judged(model))
    said = [vars(one) | {"measure": one.tag} for one in model.definitions.values()]
    yield CsvTable("definitions", "a figure's one definition", DEFINITIONS, said)


def _cells(model: ReportModel, content: Content) -> Iterator[dict[str, Any]]:
    parameters = {run.name: run.parameters for run in content.runs}
    for cell in model.cells:
        hashes = {key: parameters[cell["cell_id"]].get(key) for key in ("settings_hash", "lock_hash")}
        yield cell | hashes


def _repeats(content: Content) -> Iterator[dict[str, Any]]:
    for run in content.runs:
        where = {"cell_id": run.name, "adapter": run.label, "layout": run.layout, "track": run.track}
        for figure in run.figures if run.kind == "cell" else ():
            said = content.definitions[figure.name]
            what = {"repeat": run.repeat, "measure": said["measure"], "variant": said["variant"]}
            yield where | what | vars(figure)


def _judged(model: ReportModel) -> Iterator[dict[str, Any]]:
    for judgement in model.judgements:
        why = judgement.explained_by
        told = {"stage": why.stage, "stage_seconds": why.seconds, "stage_share": why.share} if why else {}
        yield vars(judgement) | told


def _points(model: ReportModel) -> Iterator[dict[str, Any]]:
    for cell_id, every in model.series.items():
        for name, series in every.items():
            columns = {key: column for key, column in series.items() if isinstance(column, list)}
            for column, values in columns.items():
                for point, value in enumerate(values):
                    kind = "text" if isinstance(value, str) else "number"
                    yield {"cell_id": cell_id, "series": name, "point": point, "column": column, kind: value}


def _write(table: CsvTable, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in table.fields])
        for row in table.rows:
            writer.writerow([_value(row.get(field.name), field) for field in table.fields])


def _value(value: Any, field: Field) -> Any:
    if value is None:
        return ""
    if field.kind != "string":
        number = float(value)
        return value if math.isfinite(number) else ("inf" if number > 0 else "-inf")
    text = " ".join(clean(str(value)).split())
    return f"'{text}" if text.startswith(FORMULA) else text


def _package(model: ReportModel, tables: Iterable[CsvTable]) -> dict[str, Any]:
    return {
        "name": model.run_id,
        "title": model.title,
        "created": model.created,
        "description": "A text that begins with = + - or @ has an apostrophe before it; inf is an infinite value.",
        "resources": [
            {
                "name": table.name,
                "path": f"{table.name}.csv",
                "description": f"One row is {table.one_row}.",
                "encoding": "utf-8",
                "schema": {
                    "fields": [{"name": f.name, "type": f.kind, "description": f.meaning} for f in table.fields],
                    "missingValues": [""],
                },
            }
            for table in tables
        ],
    }
