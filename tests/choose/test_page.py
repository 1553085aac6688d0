"""The page: whole, in the order of names, with no text that is markup and nothing that reaches a network."""

import re
from dataclasses import replace

import pytest

from harness.choose.choice import SIGNED, Choice
from harness.choose.page import choice_html, choice_markdown
from tests.choose.made import axis, choice, finding, framework
from tests.report.reports import HOSTILE

TEXT = "rollout_engine: {must: [vllm, sglang], indifferent: jax}, turns: {wish: tools}"


def _made() -> Choice:
    seen = finding("rollout_engine", ("vllm",), version="1.9")
    one = framework("one", seen, rollout_engine=axis(["sglang"]), multi_turn=axis(["one_shot"], unread=["tools"]))
    return choice(TEXT, one, framework("another"))


@pytest.mark.parametrize("render", [choice_html, choice_markdown])
def test_everything_that_is_known_stands_on_the_page(render: object) -> None:
    page = render(_made())  # type: ignore[operator]
    for words in (
        "Which framework meets our requirements?",
        "2026-11-30",
        "c" * 12,
        "a-run",
        "One",
        "2.0",
        "not asked",
    ):
        assert words.lower() in page.lower()
    for state in ("met", "not met", "differs", "unknown"):
        assert state in page
    assert "against it: lists sglang, not what is asked" in page
    assert "it speaks of 1.9, the pin is 2.0" in page
    assert all(line in page for line in SIGNED)
    assert page.index("Another") < page.index("One")


def test_every_cell_has_its_footnote() -> None:
    found = _made()
    page, text = choice_html(found), choice_markdown(found)
    numbers = [str(found.number(answer)) for answer in found.answers]
    assert sorted(re.findall(r'href="#n(\d+)"', page)) == sorted(numbers)
    assert sorted(re.findall(r'<li id="n(\d+)"', page)) == sorted(numbers)
    assert all(text.count(f"[{number}]") == 2 for number in numbers)


def test_the_page_reaches_nothing_and_no_text_in_it_is_markup() -> None:
    hostile = framework("one", finding("rollout_engine", ("vllm",), says=HOSTILE, source=HOSTILE))
    made = choice(TEXT, hostile)
    made = replace(made, asked=replace(made.asked, decision=HOSTILE))
    page, text = choice_html(made), choice_markdown(made)
    assert "default-src 'none'" in page
    assert not re.search(r"<script|<link|<img|url\(|src=", page)
    for bad in ("<script", "\u202e", "\x07", "![x]"):
        assert bad not in page.replace("![x](javascript", "")
        assert bad not in text


def test_nothing_open_is_said() -> None:
    seen = finding("rollout_engine", ("vllm",))
    done = choice("rollout_engine: {must: vllm}", framework("one", seen))
    assert done.open == []
    assert "Nothing: every requirement" in choice_html(done)
    assert "Nothing: every requirement" in choice_markdown(done)
