"""The learning check as each of the three reports shows it."""

import json
from pathlib import Path

from harness.report.html import render_html
from harness.report.markdown import render_markdown
from harness.report.model import ReportModel
from tests.report.reports import report

PARTS = [{"samples": 1280, "value": 0.4, "reference": 0.5, "low": 0.45, "high": 0.55}]
SAID = "its reward at equal samples leaves the band of reference"


def _model() -> ReportModel:
    model = report()
    where = {"layout": "colocated_sync", "track": "free"}
    model.figures = []
    model.learning = [
        {"adapter": "trl", "result": "outside", "said": SAID, "parts": PARTS, **where},
        {"adapter": "verl", "result": "unknown", "said": "cannot be told: <too few>", "parts": [], **where},
    ]
    return model


def test_the_check_stands_in_all_three(tmp_path: Path) -> None:
    model = _model()
    html, markdown = render_html(model, tmp_path), render_markdown(model)
    for text in (html, markdown):
        assert SAID in text
        assert "1280" in text
        assert "&lt;too few&gt;" in text
    assert '<a href="#learning">' in html
    assert '<span class="failed">outside</span>' in html
    read = ReportModel.from_dict(json.loads(json.dumps(model.as_dict())))
    assert read.learning == model.learning


def test_a_run_without_one_has_no_section(tmp_path: Path) -> None:
    model = _model()
    model.learning = []
    assert "Learning check" not in render_markdown(model) + render_html(model, tmp_path)
