import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from harness.report.figures import draw_figures
from harness.report.html import render_html
from harness.report.model import Caution, ReportModel
from tests.report.reports import HOSTILE, cells, report

VOID = {"meta", "img", "br", "hr", "link", "input"}


class Page(HTMLParser):
    """Checks that tags close in their order, and collects what a page loads, links to, and defines."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), f"an event handler {name}"
            if name == "src":
                self.loads.append(value or "")
            if name == "href":
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ReportModel:
    found = report()
    found.figures = draw_figures(found, tmp_path_factory.getbasetemp() / "figures")
    return found


@pytest.fixture(scope="module")
def text(model: ReportModel, tmp_path_factory: pytest.TempPathFactory) -> str:
    return render_html(model, tmp_path_factory.getbasetemp() / "figures")


def test_one_whole_file_that_reaches_no_network_and_runs_no_script(text: str) -> None:
    page = Page(text)
    assert not page.open
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    assert page.loads
    assert all(source.startswith("data:image/svg+xml;base64,") for source in page.loads)
    assert all(link.startswith("#") for link in page.links)
    assert "@import" not in text
    assert "url(" not in text
    assert "default-src 'none'" in text


def test_every_link_within_the_page_leads_somewhere_once(text: str) -> None:
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links} <= set(page.ids)


def test_every_definition_is_on_hover_and_in_a_footnote(model: ReportModel, text: str) -> None:
    for definition in model.definitions.values():
        assert unescape(text).count(definition.definition) >= 2
        assert f'id="def-{definition.number}"' in text
        assert f'href="#def-{definition.number}"' in text


def test_what_models_and_frameworks_wrote_is_text(model: ReportModel, tmp_path: Path) -> None:
    hostile = replace_everywhere(model)
    text = render_html(hostile, tmp_path)
    assert "<script" not in text.lower()
    assert text.count("</style>") == 1
    assert "&lt;script&gt;" in text
    assert "\u202e" not in text
    assert "\x07" not in text
    assert not Page(text).open


def replace_everywhere(model: ReportModel) -> ReportModel:
    content = model.as_dict()
    for cell in content["cells"]:
        cell.update(status="failed", cause="system", reason=HOSTILE)
    for axis in content["axes"]:
        axis.update(measured=HOSTILE, declared=HOSTILE, stale=HOSTILE, source=HOSTILE)
    for row in content["fidelity"]:
        row.update(in_force=HOSTILE, note=HOSTILE)
    for row in content["records"]:
        row.update(reason=HOSTILE)
    for figure in content["figures"]:
        figure.update(reason=HOSTILE, alt=HOSTILE)
    content["violations"] = [{"rule": HOSTILE, "table": HOSTILE, "where": HOSTILE, "detail": HOSTILE}]
    content["adapters"]["trl"].update(title=HOSTILE, version=HOSTILE)
    content["provenance"] = {"config": {"x": HOSTILE}}
    content["machine"] = {"processor": HOSTILE}
    found = ReportModel.from_dict(content)
    found.cautions = [Caution(HOSTILE, HOSTILE)]
    return found


def test_nothing_ranks(text: str) -> None:
    words = set(re.findall(r"[a-z]+", re.sub(r"<style>.*?</style>", "", text.lower(), flags=re.DOTALL)))
    assert not words & {"best", "winner", "fastest", "slowest", "rank", "overall"}
    assert text.index("reference<small>") < text.index("trl<small>")


def test_two_tracks_have_their_own_tables(model: ReportModel, tmp_path: Path) -> None:
    found = ReportModel.from_dict(model.as_dict())
    found.figures = []
    found.cells = [*found.cells, *({**cell, "track": "fixed_length"} for cell in cells())]
    found.rows = [*found.rows, *(replace(row, track="fixed_length") for row in found.rows)]
    page = Page(render_html(found, tmp_path))
    assert {"track-1", "track-2"} <= set(page.ids)


def test_one_adapter_and_an_empty_run(tmp_path: Path) -> None:
    one = report(repeats=1)
    one.cells = [cell for cell in one.cells if cell["adapter"] == "trl"]
    one.rows = [row for row in one.rows if row.adapter == "trl"]
    one.adapters.pop("reference")
    assert "reference<small>" not in render_html(one, tmp_path)
    empty = ReportModel(title="x", run_id="y", created="z", finished=None, profile="cpu")
    text = render_html(empty, tmp_path)
    assert "No cell has ended yet" in text
    assert not Page(text).open


def test_a_failed_system_keeps_its_column(tmp_path: Path) -> None:
    model = report()
    nothing = {"value": None, "low": None, "high": None, "ratio": None, "ratio_low": None, "ratio_high": None}
    failed = {"state": "failed", "reason": "failed (system): out of memory", "n": 0, "repeats": (), **nothing}
    model.rows = [replace(row, **failed) if row.adapter == "trl" else row for row in model.rows]  # type: ignore[arg-type]
    text = render_html(model, tmp_path)
    assert "trl<small>" in text
    assert "out of memory" in text
    assert 'class="failed"' in text
