"""The rows of a published run as data for the page that compares two dates."""

from typing import Any

from harness.compare.rows import Row
from harness.measure.values import json_number
from harness.report import format as fmt
from harness.report.headlines import HEADLINES
from harness.report.site.identity import identity_of
from harness.report.site.reading import Run
from harness.report.views import clean


def rows_of(run: Run) -> dict[str, Any]:
    """Columns (adapter, layout, track) with their rows. A row is `[measure, variant, value in words, interval in words,
    repeats, state, number of its remark, value]`; the value is None where there is none, or none that divides."""
    remarks: list[str] = [""]
    columns: dict[str, dict[str, Any]] = {}
    for row in run.model.rows:
        column = columns.setdefault(f"{row.adapter}.{row.layout}.{row.track}", _column(row))
        column["rows"].append(_row(row, remarks))
    return {
        "run": run.model.run_id,
        "date": run.date,
        "evidence": run.evidence,
        "corrections": [correction.line() for correction in run.corrections],
        "identity": identity_of(run),
        "columns": dict(sorted(columns.items())),
        "measures": {
            tag: {"title": said.title, "topic": said.topic, "definition": said.definition, "headline": tag in HEADLINES}
            for tag, said in run.model.definitions.items()
        },
        "remarks": [clean(remark) for remark in remarks],
    }


def _column(row: Row) -> dict[str, Any]:
    return {"title": " · ".join([row.adapter, fmt.words(row.layout), fmt.words(row.track)]), "rows": []}


def _row(row: Row, remarks: list[str]) -> list[Any]:
    reason = row.reason or ""
    if reason not in remarks:
        remarks.append(reason)
    number = json_number(row.value)
    return [
        row.measure,
        fmt.words(row.variant),
        fmt.quantity(row.value, row.unit),
        fmt.interval(row.value, row.low, row.high, row.unit),
        row.n,
        row.state,
        remarks.index(reason),
        number if isinstance(number, float | int) else None,
    ]
