"""Two turns: the environment says the same whatever was answered, and nobody but it can say it."""

import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UserError
from harness.task.arithmetic_two_turn import ArithmeticTwoTurn
from harness.task.bundle import Bundle
from harness.task.turns import TURN_MARK, join_turns, split_turns, transcript
from harness.task.verifier import Verifier
from tests.task.bundles import TWO_TURN, write_bundle

GOLDEN = [("18+13=", ["\n+16="], "31\x1e47"), ("5+0=", ["\n+8="], "5\x1e13"), ("9+7=", ["\n+13="], "16\x1e29")]
TASK = ArithmeticTwoTurn()
TEXT = st.text(string.digits + "+=\n -" + TURN_MARK, max_size=12)


def test_a_seed_means_the_same_problems_on_every_machine() -> None:
    asked = [
        (p.messages[0]["content"], p.meta["observations"], p.answer)
        for p in TASK.problems({"seed": 7, "max_operand": 20}, "prompts", 3)
    ]
    assert asked == GOLDEN
    assert [a for _, _, a in asked] != [p.answer for p in TASK.problems({"seed": 8, "max_operand": 20}, "prompts", 3)]


def test_no_problem_comes_twice_before_all_have_come() -> None:
    problems = TASK.problems({"max_operand": 2}, "prompts", 54)
    asked = [(p.meta["expression"], p.meta["operand"]) for p in problems]
    assert len(set(asked[:27])) == len(set(asked[27:])) == 27


@given(st.integers(0, 1000), st.integers(1, 99), st.floats(0.0, 0.9))
def test_both_right_is_1_and_one_right_is_partial(seed: int, largest: int, partial: float) -> None:
    settings = {"seed": seed, "max_operand": largest, "partial": partial}
    score = TASK.scorer(settings)
    for problem in TASK.problems(settings, "prompts", 3):
        one, two = split_turns(problem.answer)
        left, right = problem.meta["expression"].split("+")
        assert (int(one), int(two)) == (int(left) + int(right), int(one) + problem.meta["operand"])
        assert problem.meta["observations"] == [f"\n+{problem.meta['operand']}="]
        wrong = str(int(one) + 1), str(int(two) + 1)
        assert score(problem, problem.answer).total == 1.0
        assert score(problem, join_turns([one, wrong[1]])).total == partial
        assert score(problem, join_turns([wrong[0], two])).components == {
            "correctness": 0.0,
            "first": 0.0,
            "second": 1.0,
        }
        assert score(problem, one).total == partial
        assert score(problem, join_turns(wrong)).total == score(problem, "").total == 0.0
        canary = TASK.canary(settings, [problem])
        assert score(problem, canary.right).components["correctness"] == 1.0
        assert score(problem, canary.wrong).components["correctness"] == 0.0


def test_the_environments_words_from_the_policy_are_no_turn() -> None:
    (problem,) = TASK.problems({}, "prompts", 1)
    one, two = split_turns(problem.answer)
    forged = one + problem.meta["observations"][0] + two
    assert TASK.scorer({})(problem, join_turns([forged])).components["second"] == 0.0
    assert TASK.scorer({})(problem, join_turns([f"{one}{TURN_MARK}{two}"])).components["second"] == 0.0


@given(st.lists(TEXT, min_size=1, max_size=4))
def test_joined_turns_come_apart_again(turns: list[str]) -> None:
    assert split_turns(join_turns(turns)) == [turn.replace(TURN_MARK, "") for turn in turns]


def test_a_transcript_has_what_was_said_between_the_turns_that_there_were() -> None:
    assert transcript(join_turns(["12", "16"]), ["\n+4="]) == "12\n+4=16"
    assert transcript("12", ["\n+4="]) == "12"
    assert transcript("12", []) == "12"


def test_more_turns_than_the_environment_has_are_an_error_of_the_verifier(tmp_path: Path) -> None:
    bundle = Bundle.load(write_bundle(tmp_path / "bundle", TWO_TURN))
    first = bundle.prompts[0]
    with Verifier.start(bundle, 5.0) as verifier:
        right, longer = verifier.score([(first.prompt_id, first.answer), (first.prompt_id, join_turns(["1"] * 3))])
    assert (right.reward_total, right.components) == (1.0, {"correctness": 1.0, "first": 1.0, "second": 1.0})
    assert (longer.reward_total, longer.status) == (None, "error")
    assert verifier.version == "arithmetic-two-turn-1+partial*0.5"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"operand": 3}, "task.problems.operand does not exist"),
        ({"max_operand": 0}, "at least 1"),
        ({"prompt": "add"}, "{expression}"),
        ({"observation": "next"}, "{operand}"),
        ({"partial": 1.0}, "0..1"),
    ],
)
def test_a_wrong_setting_gets_one_clear_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        TASK.problems(settings, "prompts", 1)
