"""The rows of a published run as data for the page that compares two dates."""

from collections.abc import Mapping
from typing import Any

from harness.compare.rows import Row
from harness.measure.values import json_number
from harness.report import format as fmt
from harness.report.headlines import HEADLINES
from harness.report.history import work_of
from harness.report.site.reading import Run
from harness.report.views import clean

TITLES = {"bundle": "prompts, tokenizer and starting checkpoint"}


def rows_of(run: Run) -> dict[str, Any]:
    """Columns (adapter, layout, track) with their rows. A row is `[measure, variant, value in words, interval in words,
    repeats, state, number of its remark, value]`; both values are None where there is none, the last one also where it
    is infinite. `timeline` is that picture in words, None where it was not drawn."""
    remarks: list[str] = [""]
    columns: dict[str, dict[str, Any]] = {}
    for row in run.model.rows:
        column = columns.setdefault(f"{row.adapter}.{row.layout}.{row.track}", _column(run, row))
        column["rows"].append(_row(row, remarks))
    return {
        "run": run.model.run_id,
        "evidence": run.evidence,
        "corrections": [clean(correction.line()) for correction in run.corrections],
        "columns": dict(sorted(columns.items())),
        "measures": {
            tag: {"title": said.title, "topic": said.topic, "definition": said.definition, "headline": tag in HEADLINES}
            for tag, said in run.model.definitions.items()
        },
        "timeline": next((f.alt for f in run.model.figures if f.name == "timeline" and f.reason is None), None),
        "remarks": [clean(remark) for remark in remarks],
    }


def _column(run: Run, row: Row) -> dict[str, Any]:
    """Two columns of one work on one machine may be held together, by the rule of `rlaxes history`; `context` may
    differ. All facts are words."""
    column = (row.adapter, row.layout, row.track)
    limits = run.model.machine.get("limits")
    return {
        "title": clean(" · ".join([row.adapter, fmt.words(row.layout), fmt.words(row.track)])),
        "work": _words({TITLES.get(key, key): value for key, value in work_of(run.report, row).items()}),
        "machine": _words({"machine": run.report.machine(*column)}),
        "context": _words(run.report.context(*column) | ({"measured limits": limits} if limits else {})),
        "rows": [],
    }


def _words(facts: Mapping[str, Any]) -> dict[str, str]:
    return {clean(key): clean(fmt.setting(value)) for key, value in facts.items()}


def _row(row: Row, remarks: list[str]) -> list[Any]:
    reason = row.reason or ""
    if reason not in remarks:
        remarks.append(reason)
    number = json_number(row.value)
    return [
        row.measure,
        fmt.words(row.variant),
        None if row.value is None else fmt.quantity(row.value, row.unit),
        fmt.interval(row.value, row.low, row.high, row.unit),
        row.n,
        row.state,
        remarks.index(reason),
        number if isinstance(number, float | int) else None,
    ]
