import json

import pytest

from harness.compare.rows import JSON_KEYS, Row
from harness.errors import UserError
from harness.report.model import REPORT_SCHEMA, ReportModel
from tests.report.reports import report


def test_round_trip_through_strict_json() -> None:
    model = report()
    text = json.dumps(model.as_dict(), allow_nan=False)
    again = ReportModel.from_dict(json.loads(text))
    assert again.as_dict() == model.as_dict()
    assert all(isinstance(row, Row) for row in again.rows)
    infinite = next(r for r in again.rows if r.adapter == "trl" and r.measure == "cost_device_seconds")
    assert infinite.value == float("inf")


def test_rows_have_the_promised_keys_and_no_other() -> None:
    content = report().as_dict()
    assert content["schema"] == REPORT_SCHEMA
    assert all(tuple(row) == JSON_KEYS for row in content["rows"])
    assert {row["measure"].partition("[")[0] for row in content["rows"]} == set(content["definitions"])


def test_every_row_stands_whole_beside_its_short_form() -> None:
    content = report().as_dict()
    for short, whole in zip(content["rows"], content["records"], strict=True):
        assert (short["value"], short["adapter"]) == (whole["value"], whole["adapter"])
        assert short["measure"] == (f"{whole['measure']}[{whole['variant']}]" if whole["variant"] else whole["measure"])


def test_another_schema_is_refused() -> None:
    with pytest.raises(UserError, match="schema 99"):
        ReportModel.from_dict(report().as_dict() | {"schema": 99})
