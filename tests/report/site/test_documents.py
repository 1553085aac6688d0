from pathlib import Path

import pytest

from harness.report.site.documents import Rendered, render_document
from harness.report.site.reading import Document
from tests.report.reports import HOSTILE
from tests.report.site.folders import WORDS


def _render(folder: Path, text: str, name: str = "2026-11-29/cpu/sweep.md") -> Rendered:
    path = folder / "page.md"
    path.write_text(text, encoding="utf-8")
    known = {
        "2026-11-29/cpu/2026-11-29-090000-bb02/report.md": "2026-11-29/cpu/2026-11-29-090000-bb02/index.html",
        "2026-11-28/public/tables.md": "2026-11-28/public/tables.html",
        "2026-11-29/cpu/data.json": "2026-11-29/cpu/data.json",
        "README.md": "../index.html",
        "2026-11-29/cpu/a b#1.json": "2026-11-29/cpu/a b#1.json",
    }
    return render_document(Document(name, path, [], "measured here"), known.get)


def test_links_lead_somewhere_in_the_site_or_become_words(tmp_path: Path) -> None:
    body = _render(tmp_path, WORDS).body
    assert '<a href="2026-11-29-090000-bb02/index.html">the run</a>' in body
    assert '<a href="data.json">the data</a>' in body
    assert '<a href="../../2026-11-28/public/tables.html">' in body
    assert '<a href="https://example.org/page">' in body
    assert "the code (harness/cli.py)" in body
    assert 'href="javascript' not in body


def test_the_index_of_the_results_is_the_first_page(tmp_path: Path) -> None:
    body = _render(tmp_path, "[back](../../README.md#x)", "2026-11-28/public/tables.md").body
    assert '<a href="../../../index.html#x">back</a>' in body


def test_a_place_that_is_its_own_name_is_said_once(tmp_path: Path) -> None:
    assert "<p>see tests/data/x.md.</p>" in _render(tmp_path, "see [tests/data/x.md](../../../tests/data/x.md).").body


@pytest.mark.parametrize("text", ["[a](#b)", "[a](//example.org/x)", "[a](../../../../../etc/passwd)"])
def test_no_other_address_is_a_link(tmp_path: Path, text: str) -> None:
    assert "<a " not in _render(tmp_path, text).body


def test_a_name_of_any_kind_is_an_address(tmp_path: Path) -> None:
    assert '<a href="a%20b%231.json#x">' in _render(tmp_path, "[data](<a b%231.json#x>)").body


def test_html_and_pictures_of_a_page_are_text(tmp_path: Path) -> None:
    body = _render(tmp_path, f"{WORDS}\n\n{HOSTILE}\n\n`{HOSTILE}`").body
    assert "<script" not in body
    assert "<img" not in body
    assert "&lt;script&gt;" in body
    assert "\u202e" not in body


def test_a_table_has_its_own_box_and_a_heading_its_anchor(tmp_path: Path) -> None:
    page = _render(tmp_path, WORDS)
    assert page.title == "A sweep over lags"
    assert "<h1" not in page.body
    assert '<h2 id="part-1">What grows</h2>' in page.body
    assert page.body.count('<div class="box"') == page.body.count("</table>\n</div>") == 1
    assert [(s.title, s.anchor) for s in page.sections] == [("A sweep over lags", ""), ("What grows", "part-1")]
    assert "seldomword" in page.sections[1].text


def test_a_page_without_a_heading_is_called_by_its_file(tmp_path: Path) -> None:
    page = _render(tmp_path, "words", "2026-11-29/cpu/lag_sweep.md")
    assert page.title == "lag sweep"
    assert "words" in page.body
