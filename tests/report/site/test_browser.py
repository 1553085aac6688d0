"""The site in a real browser, opened from the file system: what it loads, what its script does, how wide it gets."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.report.site import build_site
from tests.report.site.folders import ADAPTERS, ELSEWHERE, FIRST, SECOND, write_results

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

PHONE, DESK = 360, 1280
RUN = f"results/2026-11-28/cpu/{FIRST}/index.html"
PAGES = (
    *("index.html", "compare.html", "frameworks.html", "public.html", "search.html", "search.html?q=throughput"),
    *(RUN, "results/2026-11-29/cpu/sweep.html", "results/2026-11-28/public/tables.html"),
)


class Opened:
    """A page of the site, with everything that it complained of or asked for while it was open."""

    def __init__(self, page: Any, site: Path) -> None:
        self.page, self.site = page, site
        self.complaints: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("requestfailed", self._failed)
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))

    def _failed(self, request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # the test went on to another page
            self.complaints.append(f"{request.url}: {request.failure}")

    def go(self, address: str) -> Any:
        self.page.goto("about:blank")
        self.page.goto(f"{self.site.as_uri()}/{address}", wait_until="load")
        return self.page

    def check(self) -> None:
        assert self.complaints == []
        assert [url for url in self.asked if not url.startswith((self.site.as_uri(), "data:", "about:"))] == []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser").resolve()
    return build_site(write_results(folder / "results"), folder / "site", ADAPTERS).index.parent


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        as_root = os.geteuid() == 0  # for root Chromium's own sandbox does not start; the pages are our own files
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"] if as_root else [])
        yield found
        found.close()


@pytest.fixture
def opened(browser: Any, site: Path) -> Iterator[Opened]:
    page = browser.new_page(viewport={"width": DESK, "height": 900})
    found = Opened(page, site)
    yield found
    found.check()
    page.close()


def _missing_pictures(page: Any) -> int:
    return int(page.evaluate("[...document.images].filter((image) => !image.complete || !image.naturalWidth).length"))


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_every_page_opens_without_a_complaint_and_no_wider_than_the_screen(opened: Opened, width: int) -> None:
    opened.page.set_viewport_size({"width": width, "height": 900})
    for address in PAGES:
        page = opened.go(address)
        page.wait_for_load_state("networkidle")
        assert page.title().strip(), address
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address
        assert _missing_pictures(page) == 0, address
        page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{address} with all details open"


def test_the_pictures_of_a_run_are_there(opened: Opened) -> None:
    page = opened.go(RUN)
    assert page.locator("img[src$='timeline.svg']").get_attribute("alt") == "timeline in words"
    assert page.locator("img").count() == 2
    assert _missing_pictures(page) == 0


def test_no_hostile_text_became_a_script_or_an_element(opened: Opened) -> None:
    for address in (RUN, "search.html?q=%3Cscript%3Ealert(1)%3C/script%3E", "search.html?q=verifier"):
        page = opened.go(address)
        assert page.locator("script:not([src])").count() == 0
    assert "<script>alert" in opened.go(RUN).locator("body").inner_text()


def test_the_search_finds_runs_words_frameworks_and_figures(opened: Opened) -> None:
    page = opened.go("index.html")
    page.get_by_role("searchbox").fill("Seldomword")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=Seldomword")
    assert "1 place has “Seldomword”" in page.locator("#found").inner_text()
    page.get_by_role("link", name="A sweep over lags: What grows").click()
    assert page.url.endswith("results/2026-11-29/cpu/sweep.html#part-1")
    for words, kind in (("1.15.0", "Runs"), ("areal placement", "Frameworks"), ("roofline decode", "Figures")):
        page = opened.go(f"search.html?q={words}")
        page.locator(".hit").first.wait_for()
        assert kind in page.locator("#hits h2").all_inner_texts(), words
    assert "0 places" in opened.go("search.html?q=nowhere+(at+all").locator("#found").inner_text()
    assert "Write one or more words" in opened.go("search.html").locator("#found").inner_text()


def test_the_filter_keeps_what_declares_the_value(opened: Opened) -> None:
    page = opened.go("frameworks.html")
    assert page.locator("#shown").inner_text() == "2 of 2 shown: areal, trl."
    page.get_by_label("placement").select_option("external")
    assert page.locator("#shown").inner_text() == "1 of 2 shown: trl."
    assert not page.locator("td[data-framework=areal]").is_visible()
    assert page.locator("td[data-framework=trl]").is_visible()
    page.get_by_label("placement").select_option("disaggregated")
    assert page.locator("#shown").inner_text() == "0 of 2 shown."
    page.get_by_role("button", name="show all").click()
    page.wait_for_function("document.getElementById('shown').value.startsWith('2 of 2')")


def _compare(opened: Opened, first: str, second: str) -> Any:
    page = opened.go(
        f"compare.html#a={first[:10]}/cpu/{first}&b={second[:10]}/cpu/{second}&column=trl.colocated_sync.free"
    )
    page.locator("#sides table").wait_for()
    return page


def test_two_runs_of_the_same_work_on_the_same_machine(opened: Opened) -> None:
    page = _compare(opened, FIRST, SECOND)
    assert "The same settings, on the same machine" in page.locator("#between").inner_text()
    facts = page.locator("#between tbody tr").all_inner_texts()
    assert [fact.split() for fact in facts] == [["at", "the", "time:", "trl", "1.15.0", "1.16.0"]]
    row = page.locator("#sides tr", has=page.get_by_text("Output tokens/s", exact=True))
    assert "1.00×" in row.inner_text()
    assert "2026-12-01, withdrawn" in page.locator("#sides tr", has_text="Policy lag, largest").inner_text()
    assert "was corrected" in page.locator("#between").inner_text()
    assert page.locator("#pictures img").count() == 2
    page.wait_for_function("[...document.images].every((image) => image.naturalWidth > 0)")


def test_another_machine_is_named_and_nothing_is_divided(opened: Opened) -> None:
    page = _compare(opened, SECOND, ELSEWHERE)
    said = page.locator("#between").inner_text()
    assert "These may not be compared value by value. Different: machine." in said
    assert "Another" in said
    assert "×" not in page.locator("#sides").inner_text()


def test_other_runs_and_figures_are_chosen_by_hand(opened: Opened) -> None:
    page = opened.go("compare.html#a=<img src=x>&b=../../elsewhere")
    page.locator("#sides table").wait_for()
    assert page.get_by_label("second run").input_value().endswith(ELSEWHERE)
    page.get_by_label("first run").select_option(f"2026-11-28/cpu/{FIRST}")
    page.get_by_label("system, layout, track").select_option("reference.colocated_sync.free")
    page.get_by_label("figure", exact=True).fill("policy LAG")
    page.wait_for_function("document.querySelectorAll('#sides tbody tr:not(.topic)').length === 1")
    assert FIRST in page.url
    page.get_by_label("second run").select_option(f"2026-11-28/cpu/{FIRST}")
    page.get_by_text("This is the same run twice").wait_for()


def test_a_file_that_is_not_there_is_named(browser: Any, site: Path, tmp_path: Path) -> None:
    shutil.copytree(site, tmp_path / "site")
    for path in (tmp_path / "site").rglob("*.js"):
        if path.name != "site.js":
            path.unlink()
    page = browser.new_page()
    for address, place, missing in (
        ("compare.html", "#between", "rows.js"),
        ("search.html?q=x", "#found", "search.js"),
    ):
        page.goto(f"{(tmp_path / 'site').as_uri()}/{address}")
        page.get_by_text("This page is not whole").wait_for()
        assert missing in page.locator(place).inner_text()
    page.close()


def test_the_keyboard_reaches_the_content_and_the_tables(opened: Opened) -> None:
    page = opened.go("index.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator(".box").first.focus()
    assert page.evaluate("document.activeElement.getAttribute('role')") == "region"
