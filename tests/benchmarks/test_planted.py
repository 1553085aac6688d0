"""What `python -m benchmarks.planted` plants still has its place in the code, and is Python."""

import ast

import pytest

from benchmarks.planted import CASES, ROOT, SETTINGS, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_can_be_planted(case: Case) -> None:
    text = before = (ROOT / case.file).read_text(encoding="utf-8")
    for old, new in case.replaced:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    if case.file.endswith(".py"):
        assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(before))


def test_what_is_given_wins_over_the_settings_of_a_case() -> None:
    slow = CASES[0]
    assert slow.settings([])[0] == "repeats=30"
    assert slow.settings(["repeats=2", "seed=3"]) == [*SETTINGS, "repeats=2", "seed=3"]
