"""The CSV files as pandas, Polars and DuckDB read them with their defaults."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest

from harness.compare.judgement import Explanation
from harness.export.content import content_of
from harness.export.tables import write_tables
from harness.report.model import ReportModel
from tests.export.test_content import judged
from tests.report.reports import HOSTILE, report


def _report() -> ReportModel:
    """A row without a value has none in any repeat."""
    model = report()
    return replace(model, rows=[row if row.value is not None else replace(row, repeats=()) for row in model.rows])


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("csv") / "run"
    write_tables(_report(), content_of(_report()), folder)
    return folder


def _numbers(column: Any) -> list[float | None]:
    return [None if value is None or math.isnan(value) else float(value) for value in column]


def test_three_readers_read_the_same_figures(written: Path) -> None:
    path = written / "rows.csv"
    expected = [row.value for row in report().rows]
    assert _numbers(pd.read_csv(path)["value"]) == expected
    assert _numbers(pl.read_csv(path, infer_schema_length=None)["value"].to_list()) == expected
    assert _numbers(row[0] for row in duckdb.sql(f"select value from '{path}'").fetchall()) == expected
    assert math.inf in expected
    assert None in expected


def test_a_figure_without_a_value_is_empty_and_has_its_reason(written: Path) -> None:
    rows = pd.read_csv(written / "repeats.csv")
    absent = rows[rows["value"].isna()]
    assert len(absent) == 5
    assert set(absent["reason"]) == {"weights are shared: the trained module generates"}


def test_the_dictionary_says_every_column(written: Path) -> None:
    described = json.loads((written / "datapackage.json").read_text(encoding="utf-8"))
    assert {one["path"] for one in described["resources"]} == {path.name for path in written.glob("*.csv")}
    for one in described["resources"]:
        fields = one["schema"]["fields"]
        assert [field["name"] for field in fields] == list(pd.read_csv(written / one["path"], nrows=0).columns)
        assert all(field["description"] for field in fields)
        read = pl.read_csv(written / one["path"], infer_schema_length=None)
        for field in fields:
            column = read[field["name"]]
            if field["type"] in {"number", "integer"} and column.null_count() < len(column):
                assert column.dtype.is_numeric(), field


def test_series_are_values_by_point(written: Path) -> None:
    points = pd.read_csv(written / "series.csv")
    cell = points[points["cell_id"] == "trl.colocated_sync.free.r1"]
    loss = cell[(cell["series"] == "reward") & (cell["column"] == "mean")]
    expected = report().series["trl.colocated_sync.free.r1"]["reward"]["mean"]
    assert _numbers(loss["number"]) == expected
    assert set(cell[cell["series"] == "timeline"]["text"].dropna()) >= {"decode", "prefill"}


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", HOSTILE])
def test_a_text_is_no_formula_and_stays_on_one_line(text: str, tmp_path: Path) -> None:
    model: ReportModel = report()
    model.rows[0] = replace(model.rows[0], reason=text)
    write_tables(model, content_of(model), tmp_path / "run")
    (said, *_) = pd.read_csv(tmp_path / "run" / "rows.csv")["reason"]
    assert not said.startswith(("=", "+", "-", "@"))
    assert "\n" not in said
    assert "\x07" not in said


def test_judgements_are_a_table_with_the_stage_that_explains_them(tmp_path: Path) -> None:
    one = judged(explained_by=Explanation("decode", 0.02, 0.9))
    write_tables(replace(report(), judgements=[one]), content_of(report()), tmp_path / "run")
    (row,) = pd.read_csv(tmp_path / "run" / "judgements.csv").to_dict("records")
    assert (row["state"], row["effect"], row["stage"], row["stage_seconds"]) == ("worse", 0.9, "decode", 0.02)
    assert math.isnan(row["p"])
