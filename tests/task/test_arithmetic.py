"""The generator is the same everywhere, and an answer is read from whatever a model writes around it."""

import re
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UserError
from harness.task.arithmetic import Arithmetic, read_answer

TASK = Arithmetic()
WORDS = st.text(string.ascii_letters + " .:=\n<>", max_size=20)

GOLDEN = [("3*6=", "18"), ("11+1=", "12"), ("3*8=", "24"), ("4*0=", "0"), ("12-15=", "-3")]


def asked(settings: dict[str, Any], count: int, split: Any = "prompts") -> list[tuple[str, str]]:
    return [(p.messages[0]["content"], p.answer) for p in TASK.problems(settings, split, count)]


def test_a_seed_means_the_same_questions_on_every_machine_and_python() -> None:
    settings = {"seed": 7, "operators": "+-*", "max_operand": 20}
    assert asked(settings, 5) == GOLDEN
    assert asked(settings, 500)[:5] == GOLDEN
    assert asked(settings | {"seed": 8}, 5) != GOLDEN
    assert asked(settings, 5, "fit") != GOLDEN


def test_no_question_comes_twice_before_all_have_come() -> None:
    questions = [question for question, _ in asked({"operators": "+-", "max_operand": 3}, 70)]
    assert len(set(questions[:32])) == 32
    assert len(set(questions[32:64])) == 32


@given(st.integers(0, 1000), st.sampled_from(["+", "-", "*", "+-", "+-*"]), st.integers(1, 99))
def test_the_answer_is_right_and_scores_1_alone(seed: int, operators: str, largest: int) -> None:
    settings = {"seed": seed, "operators": operators, "max_operand": largest, "format_weight": 0.5}
    score = TASK.scorer(settings)
    for problem in TASK.problems(settings, "prompts", 3):
        left, operator, right = re.fullmatch(r"(\d+)([-+*])(\d+)=", problem.messages[0]["content"]).groups()  # type: ignore[union-attr]
        assert max(int(left), int(right)) <= largest
        assert operator in operators
        assert int(problem.answer) == eval(f"{left}{operator}{right}")
        assert score(problem, problem.answer).components == {"correctness": 1.0, "format": 1.0}
        assert score(problem, f"It is {problem.answer}.").total == 1.0
        assert score(problem, str(int(problem.answer) + 1)).total == 0.5
        canary = TASK.canary(settings, [problem])
        assert score(problem, canary.right).components["correctness"] == 1.0
        assert score(problem, canary.wrong).components["correctness"] == 0.0


@given(WORDS, st.integers(-(10**30), 10**30), st.text(string.ascii_letters + " =\n<>", max_size=20))
def test_a_number_is_found_among_words(before: str, number: int, after: str) -> None:
    assert read_answer(f"{before} {number}{after}") == str(number)


@given(
    st.integers(0, 999), st.integers(0, 999), st.sampled_from(["{}-{}", "{} - {}", "{} \N{MINUS SIGN} {}", "({})-{}"])
)
def test_a_minus_between_numbers_is_no_sign(left: int, right: int, form: str) -> None:
    assert read_answer(form.format(left, right)) == str(right)


@given(st.text())
def test_any_text_gives_a_plain_integer_or_nothing(text: str) -> None:
    found = read_answer(text)
    assert found is None or re.fullmatch(r"0|-?[1-9][0-9]*", found)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", None),
        ("nineteen", None),
        ("19", "19"),
        ("12+7=19", "19"),
        ("019", "19"),
        ("-0", "0"),
        ("= -7", "-7"),
        ("=-7.", "-7"),
        ("12-19=-7", "-7"),
        ("5 - -7", "-7"),
        ("\N{MINUS SIGN}7", "-7"),
        ("1,234", "1234"),
        ("3,4", "4"),
        ("19.0", "19"),
        ("19.5", None),
        ("19. So", "19"),
        ("first 3 then 4", "4"),
        ("\N{ARABIC-INDIC DIGIT FOUR}", None),
        ("9" * 10_000, "9" * 10_000),
    ],
)
def test_reading(text: str, answer: str | None) -> None:
    assert read_answer(text) == answer


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"operater": "+"}, "task.problems.operater does not exist; did you mean task.problems.operators?"),
        ({"operators": "+/"}, "use one or more of"),
        ({"operators": ""}, "use one or more of"),
        ({"max_operand": 0}, "at least 1"),
        ({"prompt": "add them"}, "{expression}"),
    ],
)
def test_a_wrong_setting_gets_one_clear_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        TASK.problems(settings, "prompts", 1)


def test_the_version_says_when_the_format_counts() -> None:
    assert TASK.version({}) == "arithmetic-1"
    assert TASK.version({"format_weight": 0.5}) == "arithmetic-1+format*0.5"
