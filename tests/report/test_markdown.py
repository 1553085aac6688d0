import re
from itertools import pairwise

from harness.report.markdown import render_markdown
from harness.report.markup import escape
from harness.report.model import ReportModel
from tests.report.reports import HOSTILE, report


def test_tables_are_whole() -> None:
    lines = render_markdown(report()).splitlines()
    for before, line in pairwise(lines):
        if line.startswith("| ") and before.startswith("| "):
            assert len(re.findall(r"(?<!\\)\|", line)) == len(re.findall(r"(?<!\\)\|", before)), line


def test_what_models_wrote_is_text() -> None:
    text = render_markdown(report())
    assert "<script" not in text
    assert "![x](javascript" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;" in text


def test_escape_keeps_a_cell_on_one_line() -> None:
    assert escape("a|b\nc") == r"a\|b c"
    assert "\n" not in escape(HOSTILE + "\n")


def test_it_says_what_to_distrust_first_and_why_a_figure_is_not_there() -> None:
    text = render_markdown(report())
    assert text.index("What to distrust first") < text.index("## Comparison") < text.index("## Definitions")
    assert "Not drawn: nothing was drawn." in text


def test_an_empty_run() -> None:
    empty = ReportModel(title="x", run_id="y", created="z", finished=None, profile="cpu")
    assert "0 of 0 cells ok" in render_markdown(empty)
