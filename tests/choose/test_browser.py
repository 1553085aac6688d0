"""The page in a real browser: nothing overflows on a phone or a desk, every link has its target, nothing is loaded."""

import shutil
from pathlib import Path

import pytest

from harness.choose.choice import choose
from harness.choose.known import known_frameworks
from harness.choose.page import choice_html
from harness.execute.adapter import find_adapters
from tests.choose.made import CLOCK, RLAXES, asked

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_overflows_and_every_link_has_its_target(tmp_path: Path, width: int) -> None:
    specs = {name: adapter.spec for name, adapter in find_adapters().items()}
    text = "nodes: {must: many}, recovery: {must: [optimizer, rng], wish: versions}, rollout_engine: {must: vllm}"
    page_file = tmp_path / "choice.html"
    made = choose(asked(text), known_frameworks(specs, ["trl"], []), CLOCK, RLAXES, ["2026-11-30-011232-ed12"] * 6)
    page_file.write_text(choice_html(made), encoding="utf-8")
    requests: list[str] = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.on("request", lambda request: requests.append(request.url))
        page.goto(page_file.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == width
        dead = "[...document.querySelectorAll('a')].filter(a => !document.getElementById(a.hash.slice(1))).length"
        assert page.evaluate(dead) == 0
        browser.close()
    assert requests == [page_file.as_uri()]
