"""The site as files: what is in it, what is escaped, what is refused, and what happens to what cannot be read."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from harness.commands.axes import mapped
from harness.errors import UserError
from harness.report.seals import write_seal
from harness.report.site import build_site
from harness.report.site.build import MARK
from tests.report.reports import HOSTILE
from tests.report.site.folders import ADAPTERS, ELSEWHERE, FIRST, SECOND, correct, write_results, write_run
from tests.report.test_html import replace_everywhere
from tests.report.test_judgements import judgement

VOID = {"meta", "img", "br", "hr", "link", "input"}


class Page(HTMLParser):
    """Checks that tags close in their order; collects ids, scripts and everything that a page points to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.targets: list[str] = []
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.scripts: list[str | None] = []
        self.alts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        assert not [name for name in said if name.startswith("on")]
        self.targets += [value or "" for name, value in attrs if name in {"href", "src", "action"}]
        self.loads += [value or "" for name, value in attrs if name == "src" or (name == "href" and tag == "link")]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.scripts += [said.get("src")] if tag == "script" else []
        self.alts += [said.get("alt") or ""] if tag == "img" else []

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, self.getpos()


def pages_of(site: Path) -> Iterator[tuple[Path, Page]]:
    for path in sorted(site.rglob("*.html")):
        if path.name != "report.html":
            yield path, Page(path.read_text(encoding="utf-8"))


def dead_links(site: Path) -> list[str]:
    """Targets of any page that no file of the site, or no element of a page, answers to."""
    pages = dict(pages_of(site))
    found = []
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme:
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            in_page = pages.get(file)
            missing = bool(parts.fragment) and in_page is not None and parts.fragment not in in_page.ids
            if not file.is_file() or not file.is_relative_to(site.resolve()) or (missing and "=" not in parts.fragment):
                found.append(f"{path.relative_to(site)} -> {target}")
    return found


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_results(tmp_path_factory.mktemp("published") / "results")


@pytest.fixture(scope="module")
def site(results: Path) -> Path:
    return build_site(results, results.parent.resolve() / "site", ADAPTERS).index.parent


def test_it_has_a_page_for_everything(site: Path) -> None:
    names = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    firsts = {f"{name}.html" for name in ("index", "compare", "frameworks", "public", "search")}
    assert firsts <= names
    assert f"results/2026-11-28/cpu/{FIRST}/index.html" in names
    assert {"results/2026-11-29/cpu/sweep.html", "results/2026-11-28/public/tables.html"} <= names
    assert (site / "results/2026-11-29/cpu/data.json").is_file()


def test_pages_are_lawful_and_no_link_is_dead(site: Path) -> None:
    for path, page in pages_of(site):
        assert not page.open, path
        assert len(page.ids) == len(set(page.ids)), path
        assert all(page.scripts), "a script within a page"
        assert all(page.alts)
    assert dead_links(site) == []


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for path, page in pages_of(site):
        text = path.read_text(encoding="utf-8")
        assert "default-src 'none'" in text
        assert not [target for target in page.loads if "//" in target]
    style = (site / "assets" / "site.css").read_text(encoding="utf-8")
    assert "url(" not in style
    assert "@import" not in style


def test_newest_first_and_systems_by_name(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    assert text.index(f'mono">{ELSEWHERE}') < text.index(f'mono">{SECOND}') < text.index(f'mono">{FIRST}')
    assert "reference 0.1.0, trl 1.16.0" in text
    words = set(re.findall(r"[a-z]+", text.lower()))
    assert not words & {"best", "winner", "fastest", "slowest", "rank", "overall"}


def test_a_system_under_another_name_is_no_column_of_the_measured_axes(tmp_path: Path) -> None:
    path = write_run(tmp_path / "results", FIRST) / "report.json"
    text = path.read_text(encoding="utf-8").replace('"adapter": "trl"', '"adapter": "trl@1.15.0"')
    content = json.loads(text)
    content["adapters"]["trl@1.15.0"] = content["adapters"].pop("trl") | {"name": "trl"}
    path.write_text(json.dumps(content), encoding="utf-8")
    text = build_site(tmp_path / "results", tmp_path / "site", ADAPTERS).index.read_text(encoding="utf-8")
    axes = text.partition('id="axes"')[2].partition("</table>")[0]
    assert "reference" in axes
    assert "trl" not in axes


def test_verdicts_are_counted_by_state_and_shown_on_the_page_of_their_run(tmp_path: Path) -> None:
    path = write_run(tmp_path / "results", FIRST) / "report.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    verdicts = [judgement("worse"), judgement("no change"), judgement("no change")]
    path.write_text(json.dumps(content | {"judgements": [one.as_dict() for one in verdicts]}), encoding="utf-8")
    index = build_site(tmp_path / "results", tmp_path / "site", ADAPTERS).index
    assert "<td>1 worse, 2 no change</td>" in index.read_text(encoding="utf-8")
    run = index.parent / "results" / "2026-11-28" / "cpu" / FIRST / "index.html"
    assert 'id="judgements"' in run.read_text(encoding="utf-8")


def test_corrections_stand_above_and_a_withdrawn_figure_is_no_number(site: Path) -> None:
    run = (site / f"results/2026-11-28/cpu/{FIRST}/index.html").read_text(encoding="utf-8")
    assert run.index("Corrected after it was published") < run.index("What to distrust first")
    assert "&lt;script&gt;" in run
    assert "2026-12-01, withdrawn (trl/*/*/lag_max)" in run.partition("What to distrust first")[2]
    data = (site / f"results/2026-11-28/cpu/{FIRST}/rows.js").read_text(encoding="utf-8")
    content = json.loads(f"[{data.removeprefix('rlaxes.take(').strip().removesuffix(');')}]")[1]
    rows = [row for row in content["columns"]["trl.colocated_sync.free"]["rows"] if row[0] == "lag_max"]
    assert [(row[2], row[5], row[7]) for row in rows] == [(None, "not measured", None)]


def test_public_numbers_are_apart(site: Path) -> None:
    assert "What others printed" in (site / "public.html").read_text(encoding="utf-8")
    assert "What others printed" not in (site / "index.html").read_text(encoding="utf-8")
    assert "rlaxes saw neither the run nor its logs" in (site / "results/2026-11-28/public/tables.html").read_text(
        "utf-8"
    )


def test_whatever_is_written_anywhere_is_text(tmp_path: Path) -> None:
    from tests.report.reports import report

    results = tmp_path / "results"
    folder = write_run(results, FIRST)
    model = replace_everywhere(report())
    model.title = model.run_id = model.profile = HOSTILE
    model.task = {HOSTILE: HOSTILE, "task": HOSTILE}
    (folder / "report.json").write_text(json.dumps(model.as_dict()), encoding="utf-8")
    said = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (folder / "manifest.json").write_text(json.dumps(said | {"locks": {HOSTILE: HOSTILE}}), encoding="utf-8")
    site = build_site(results, tmp_path / "site", ADAPTERS).index.parent
    for path, page in pages_of(site):
        assert not page.open
        assert all(source and source.endswith("site.js") for source in page.scripts), path
    for path in site.rglob("*.js"):
        if path.name != "site.js":
            assert "<" not in path.read_text(encoding="utf-8"), path
    assert "\u202e" not in (site / "index.html").read_text(encoding="utf-8")


BROKEN = {
    "JSONDecodeError": '{"schema": 1,',
    "schema 7": '{"schema": 7}',
    "KeyError": '{"schema": 1, "title": "x"}',
    "'list'": "[]",
}


@pytest.mark.parametrize("reason", BROKEN)
def test_a_broken_report_is_named_and_the_rest_is_built(tmp_path: Path, reason: str) -> None:
    results = tmp_path / "results"
    folder = write_run(results, FIRST)
    write_run(results, SECOND)
    (folder / "report.json").write_text(BROKEN[reason], encoding="utf-8")
    built = build_site(results, tmp_path / "site", ADAPTERS)
    assert [(one.path, reason in one.reason) for one in built.broken] == [(f"2026-11-28/cpu/{FIRST}/report.json", True)]
    assert built.runs == 1
    assert FIRST in built.index.read_text(encoding="utf-8")
    assert dead_links(tmp_path / "site") == []


def test_a_report_that_lacks_what_its_page_needs_is_on_no_page(tmp_path: Path) -> None:
    results = tmp_path / "results"
    folder = write_run(results, FIRST)
    content = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    del content["cells"][0]["cell_id"]
    (folder / "report.json").write_text(json.dumps(content), encoding="utf-8")
    built = build_site(results, tmp_path / "site", ADAPTERS)
    assert (built.runs, len(built.broken)) == (0, 1)
    assert "cell_id" in built.broken[0].reason
    assert dead_links(tmp_path / "site") == []


def test_a_run_without_a_manifest_is_named(tmp_path: Path) -> None:
    (write_run(tmp_path / "results", FIRST) / "manifest.json").unlink()
    built = build_site(tmp_path / "results", tmp_path / "site", ADAPTERS)
    assert built.runs == 0
    assert "manifest.json" in built.broken[0].reason
    assert str(tmp_path) not in built.broken[0].reason


def test_what_was_changed_after_its_publication_is_said_above_everything(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "results", FIRST)
    write_seal(folder, "measured here", "2026-11-28")
    assert build_site(tmp_path / "results", tmp_path / "site", ADAPTERS).changed == []
    (folder / "report.html").write_text("better numbers", encoding="utf-8")
    built = build_site(tmp_path / "results", tmp_path / "site", ADAPTERS)
    assert len(built.changed) == 1
    run = built.index.parent / "results" / "2026-11-28" / "cpu" / FIRST / "index.html"
    for page in (built.index, run):
        text = page.read_text(encoding="utf-8")
        assert "Not as it was published" in text
        assert f"2026-11-28/cpu/{FIRST}/report.html was changed after its publication" in text
        assert str(tmp_path) not in text


def test_a_broken_correction_is_no_reason_to_show_the_run_without_it(tmp_path: Path) -> None:
    correct(write_run(tmp_path / "results", FIRST), number=3)
    built = build_site(tmp_path / "results", tmp_path / "site", ADAPTERS)
    assert built.runs == 0
    assert "correction 3" in built.broken[0].reason


def test_a_folder_that_is_not_there_and_one_with_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no folder"):
        build_site(tmp_path / "none", tmp_path / "site", ADAPTERS)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="nothing is published"):
        build_site(tmp_path / "empty", tmp_path / "site", ADAPTERS)
    assert not (tmp_path / "site").exists()


def test_only_a_site_of_ours_is_replaced(tmp_path: Path) -> None:
    results, site = tmp_path / "results", tmp_path / "site"
    write_run(results, FIRST)
    site.mkdir()
    (site / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UserError, match="no site of rlaxes"):
        build_site(results, site, ADAPTERS)
    assert (site / "mine.txt").exists()
    (site / "mine.txt").unlink()
    build_site(results, site, ADAPTERS)
    (site / "left over.html").write_text("old", encoding="utf-8")
    build_site(results, site, ADAPTERS)
    assert (site / MARK).exists()
    assert not (site / "left over.html").exists()


@pytest.mark.parametrize("place", ["results", "results/site", "results/2026-11-28/site", "."])
def test_the_results_are_never_written_to(tmp_path: Path, place: str) -> None:
    folder = write_run(tmp_path / "results", FIRST)
    (tmp_path / MARK).touch()
    with pytest.raises(UserError, match="never written over or into results"):
        build_site(tmp_path / "results", tmp_path / place, ADAPTERS)
    assert folder.exists()


def test_the_folder_that_one_stands_in_can_be_the_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path / "results", FIRST)
    (tmp_path / "site").mkdir()
    monkeypatch.chdir(tmp_path / "site")
    build_site(Path("../results"), Path(), ADAPTERS)
    assert (tmp_path / "site" / "index.html").is_file()


def test_what_this_repository_publishes_makes_a_whole_site(tmp_path: Path) -> None:
    built = build_site(Path(__file__).parents[3] / "results", tmp_path.resolve() / "site", mapped([]))
    assert built.broken == []
    assert dead_links(built.index.parent) == []
