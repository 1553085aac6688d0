from typing import Any

import pytest

from adapters.verl.asynchronous.stamps import Segment, engine_facts, token_stamps, version_columns

PUBLISHED = {4: (8, 5), 5: (10, 6)}


def segment(tokens: int, stamp: int, **seen: Any) -> Segment:
    return {"tokens": tokens, "stamp": stamp, "stop_reason": "completed", "seen": seen}


def test_each_token_bears_the_stamp_of_the_weights_that_sampled_it() -> None:
    cut = [segment(2, 4), segment(0, 4), segment(3, 5)]
    assert token_stamps(cut, 5) == [4, 4, 5, 5, 5]
    assert token_stamps(cut, 4) == [4, 4, 5, 5]
    with pytest.raises(ValueError, match="5 tokens in the segments of a completion of 6"):
        token_stamps(cut, 6)


def test_a_completion_of_one_version_has_one_and_another_has_one_a_token() -> None:
    one = version_columns([5, 5], PUBLISHED)
    assert one == {"policy_version": 10, "token_policy_versions": None, "published_version": 6}
    two = version_columns([4, 5, 5], PUBLISHED)
    assert two == {"policy_version": None, "token_policy_versions": [8, 10, 10], "published_version": 5}


def test_two_stamps_of_the_same_weights_are_one_version() -> None:
    """one_step_off hands the initial weights over twice, under two numbers."""
    found = version_columns([0, 1], {0: (0, 0), 1: (0, 1)})
    assert (found["policy_version"], found["token_policy_versions"]) == (0, None)


@pytest.mark.parametrize(("stamps", "why"), [([4, 7], "weights numbered \\[7\\]"), ([], "no token")])
def test_no_version_is_made_up(stamps: list[int], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        version_columns(stamps, PUBLISHED)


def test_a_completion_began_with_its_first_answer_and_ended_for_the_last_ones_reason() -> None:
    said = [
        segment(0, 4),
        segment(1, 4, t_generate_start=3, t_first_token=5, finish_reason="abort"),
        segment(2, 5, t_generate_start=9, t_first_token=11, finish_reason="stop"),
    ]
    assert engine_facts(said) == {"t_generate_start": 3, "t_first_token": 5, "finish_reason": "stop"}
    assert engine_facts([segment(1, 4)]) == {}
