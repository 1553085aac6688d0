import json

import pytest

from harness.compare.rows import Row
from harness.errors import UserError
from harness.report.model import REPORT_SCHEMA, ReportModel
from tests.report.reports import report

ROW_KEYS = {
    "adapter",
    "layout",
    "track",
    "measure",
    "value",
    "unit",
    "direction",
    "n",
    "low",
    "high",
    "state",
    "reason",
}


def test_round_trip_through_strict_json() -> None:
    model = report()
    text = json.dumps(model.as_dict(), allow_nan=False)
    again = ReportModel.from_dict(json.loads(text))
    assert again.as_dict() == model.as_dict()
    assert all(isinstance(row, Row) for row in again.rows)
    infinite = next(r for r in again.rows if r.adapter == "trl" and r.measure == "cost_device_seconds")
    assert infinite.value == float("inf")


def test_rows_have_the_promised_keys_and_the_tag_of_the_class() -> None:
    content = report().as_dict()
    assert content["schema"] == REPORT_SCHEMA
    assert all(ROW_KEYS | {"evidence"} <= set(row) for row in content["rows"])
    assert {row["measure"] for row in content["rows"]} <= set(content["definitions"])


def test_another_schema_is_refused() -> None:
    with pytest.raises(UserError, match="schema 99"):
        ReportModel.from_dict(report().as_dict() | {"schema": 99})
