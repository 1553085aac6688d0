"""A report of a run with an A/A test, with cells that were added, and with cells that had another try."""

import json
from pathlib import Path

import pytest

from harness.audit import check_run
from harness.report.cautions import cautions_of
from harness.report.measured import load_manifest, null_results
from harness.report.model import ReportModel
from harness.report.publish import publish_run
from tests.report.reports import report
from tests.report.runs import cell, make_run, manifest, write_ledger


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A cell, one that was added, and a pair of the A/A test of which the second arm failed."""
    arms = [cell("null-a"), cell("null-b", status="failed", cause="system", reason="RuntimeError: told to crash")]
    arms = [arm | {"system": "reference"} for arm in arms]
    null = {f"{arm}.colocated_sync.free" for arm in ("null-a", "null-b")}
    cells = [cell("reference"), cell("trl")]
    configs = manifest(cells)["configs"]
    configs |= dict.fromkeys(null, configs["reference.colocated_sync.free"])
    former = cell("reference", status="failed", cause="system", reason="killed by signal 9") | {"kept": "r0.redone1"}
    added = [{"began": "2026-11-30T08:00:00+00:00", "cells": ["trl.colocated_sync.free.r0"]}]
    parts = {"null_cells": arms, "configs": configs, "redone": [former], "additions": added}
    folder = make_run(tmp_path, cells, **parts)
    write_ledger(folder, "null-a.colocated_sync.free.r0")
    write_ledger(folder, "null-b.colocated_sync.free.r0")
    return folder


def test_both_arms_are_measured_and_a_failed_cell_has_no_values(run: Path) -> None:
    arms = null_results(run, load_manifest(run))
    assert {arm: [bool(cell.values) for cell in cells] for arm, cells in arms.items()} == {
        "null-a": [True],
        "null-b": [False],
    }


def test_the_ledgers_of_the_test_are_checked_too(run: Path) -> None:
    assert check_run(run) == []
    (run / "ledger" / "null-a.colocated_sync.free.r0.rollouts.parquet").unlink()
    assert [violation.rule for violation in check_run(run)] == ["sealed_bytes"]


def test_what_is_published_keeps_every_row(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.report.build.draw_figures", lambda model, folder: [])
    folder = publish_run(run, tmp_path / "results")
    published = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert [row["cell_id"] for row in published["null_cells"]] == [
        "null-a.colocated_sync.free.r0",
        "null-b.colocated_sync.free.r0",
    ]
    assert published["redone"][0]["reason"] == "killed by signal 9"
    assert all("fidelity" not in row for table in ("null_cells", "redone") for row in published[table])
    model = ReportModel.from_dict(json.loads((folder / "report.json").read_text(encoding="utf-8")))
    assert {row.adapter for row in model.rows} == {"reference", "trl"}
    said = [caution.text for caution in model.cautions if caution.about == "run"]
    assert said == [
        "1 cell was added later than others of the same repeat (trl.colocated_sync.free.r0 the first): they did not "
        "run in turns.",
        "reference.colocated_sync.free.r0 was run again after it failed (killed by signal 9).",
    ]


def test_another_try_of_the_test_itself_is_said_of_the_machine() -> None:
    model = report()
    before = [one.text for one in cautions_of(model)]
    model.provenance["redone"] = [{"cell_id": "null-a.x.y.r0", "reason": None}]
    (said,) = [one for one in cautions_of(model) if one.text not in before]
    assert (said.about, said.text[:31]) == ("machine", "the A/A test was run again, sin")


def test_repeats_that_were_added_to_every_column_are_none() -> None:
    model = report()
    before = [one.text for one in cautions_of(model)]
    last = max(cell["repeat"] for cell in model.cells)
    added = [cell["cell_id"] for cell in model.cells if cell["repeat"] == last]
    model.provenance["additions"] = [{"began": "2026-11-30T08:00:00+00:00", "cells": added}]
    assert [one.text for one in cautions_of(model)] == before
