"""Drills in a report: told in every form, safe against what a process wrote, and part of no comparison."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.report.build import build_report
from harness.report.drills import counts_of, items_of, print_drills, title_of
from harness.report.html import render_html
from harness.report.markdown import render_markdown
from harness.report.model import ReportModel
from tests.report.reports import HOSTILE, report
from tests.report.runs import TASK, cell, make_run
from tests.report.runs import manifest as manifest_of


def _verdict(**changes: Any) -> dict[str, Any]:
    item = {"attempt": 1, "item": "optimizer", "state": "restarted", "saved": "xxh3_128:0123456789abcdef", "found": ""}
    content: dict[str, Any] = {
        "cell_id": "reference+trainer_dies.colocated_sync.free.r0",
        "adapter": "reference+trainer_dies",
        "layout": "colocated_sync",
        "track": "free",
        "repeat": 0,
        "fault": "trainer_dies",
        "twin": "reference.colocated_sync.free.r0",
        "status": "ok",
        "attempts": [
            {"attempt": 0, "status": "failed", "reason": f"killed by signal 9 {HOSTILE}", "wall_s": 12.0},
            {"attempt": 1, "status": "ok", "reason": None, "wall_s": 8.0},
        ],
        "continues": False,
        "word": "not the same experiment: optimizer not cold",
        "checks": [
            {"name": "optimizer not cold", "result": "broken", "said": f"saved 01, found 02 {HOSTILE}"},
            {"name": "the run came to its end", "result": "holds", "said": "attempt 1 ended ok"},
        ],
        "items": [item | {"evidence": HOSTILE}],
        "cost": "restarts: 1",
        "apart": "first differs in step 4, loss of p0.b4.g0: 1 undisturbed, 2 drilled; parameters different",
        "divergence": None,
    }
    return content | changes


def test_items_that_are_not_restored_are_named() -> None:
    states = {"optimizer": "restarted", "rng": "lost", "lr_scheduler": "restored", "parameters": "restored"}
    items = [{"item": name, "state": state} for name, state in states.items()]
    assert items_of({"items": items}) == "optimizer restarted, rng lost, 2 restored"
    assert items_of({"items": items[2:]}) == "2 restored"
    assert items_of({"items": []}) == "–"


def _drilled() -> ReportModel:
    model = report()
    model.figures = []
    model.verdicts = [_verdict(), _verdict(continues=True, word="continues the same experiment", checks=[], items=[])]
    return model


def test_it_is_told_in_every_form(tmp_path: Path) -> None:
    model = _drilled()
    out = io.StringIO()
    print_drills(model, Console(file=out, width=100))
    for text in (render_html(model, tmp_path), render_markdown(model), out.getvalue()):
        assert "not the same experiment: optimizer not cold" in text
        assert "continues the same experiment" in text
        assert "first differs in step 4" in text
    for text in (render_html(model, tmp_path), render_markdown(model)):
        assert "<script" not in text
        assert "0123456789ab" in text
        assert "2 drills: 1 continued, 1 did not continue" in text


def test_the_page_is_read_back_with_its_verdicts() -> None:
    model = _drilled()
    assert ReportModel.from_dict(json.loads(json.dumps(model.as_dict()))).verdicts == model.verdicts


def test_a_drill_has_a_short_name() -> None:
    assert title_of(_verdict(repeat=2)) == "reference · colocated sync · trainer dies · repeat 2"
    assert counts_of(ReportModel(title="x", run_id="y", created="z", finished=None, profile="cpu")) == ""


@pytest.mark.parametrize("status", ["failed", "not_run"])
def test_a_drilled_cell_that_left_nothing_is_said_and_stands_in_no_table(
    tmp_path: Path, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.report.build.draw_figures", lambda model, folder: [])
    drilled = cell("reference+trainer_dies", status=status, reason="the disk is full")
    drilled |= {"system": "reference", "fault": "trainer_dies", "twin": "reference.colocated_sync.free.r0"}
    cells = [cell("reference"), drilled]
    configs = manifest_of(cells, adapters=("reference", "reference+trainer_dies"))["configs"]
    resolved = configs["reference+trainer_dies.colocated_sync.free"]["resolved"]
    resolved["task"] = TASK
    run = make_run(tmp_path, cells, adapters=("reference",), configs=configs)
    model = build_report(run)
    (verdict,) = model.verdicts
    assert verdict["continues"] is None
    said = {"failed": "cannot be told: anything was recorded", "not_run": "not run: the disk is full"}
    assert verdict["word"] == said[status]
    assert {row.adapter for row in model.rows} == {"reference"}
    assert model.names == ["reference"]
    assert any("its drill ended badly" in caution.text for caution in model.cautions)
