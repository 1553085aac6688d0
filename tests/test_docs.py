"""The docs say what the code does."""

import re
from pathlib import Path

import pytest

from harness.measure.api import catalogue
from harness.report.measures_page import PAGE, measures_page

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


def test_the_page_of_measures_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == measures_page(), "run python -m harness.report.measures_page"


def test_every_figure_says_what_it_is() -> None:
    for measure in catalogue():
        assert measure.definition.endswith("."), measure.tag
        assert measure.source, measure.tag


def test_the_walk_through_an_adapter_shows_its_files_as_they_are() -> None:
    """A block names its file beside its language; a line of three dots stands for lines that are left out."""
    page = (ROOT / "docs" / "add_an_adapter.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\w+ (\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 8
    for name, block in blocks:
        text = (ROOT / "tests" / "third_party" / "project" / name).read_text(encoding="utf-8")
        for part in block.split("...\n"):
            assert part in text, f"{name} does not hold:\n{part}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_link_of_a_page_is_dead(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), target
