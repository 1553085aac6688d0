import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.reference.advantages import group_advantages

REWARDS = st.lists(st.floats(-10, 10, allow_subnormal=False), min_size=2, max_size=12)


@given(REWARDS, st.sampled_from([0, 1]), st.floats(1e-6, 1e-2))
def test_it_is_the_standard_score(rewards: list[float], ddof: int, eps: float) -> None:
    deviation = statistics.stdev(rewards) if ddof else statistics.pstdev(rewards)
    mean = statistics.fmean(rewards)
    expected = [(reward - mean) / (deviation + eps) for reward in rewards]
    assert group_advantages(rewards, "group", ddof, eps) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@given(REWARDS)
def test_without_std_it_is_centred_only(rewards: list[float]) -> None:
    advantages = group_advantages(rewards, "none", 1, 1e-4)
    assert sum(advantages) == pytest.approx(0.0, abs=1e-9)
    assert advantages[0] - advantages[1] == pytest.approx(rewards[0] - rewards[1], abs=1e-9)


def test_equal_rewards_say_nothing() -> None:
    assert group_advantages([1.0] * 8, "group", 1, 1e-4) == [0.0] * 8
