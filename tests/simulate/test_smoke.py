"""The module's smoke profile [12.3.4]: what depth brings and what it costs."""

import pytest

from harness.simulate.rates import rates_of
from tests.simulate.worlds import figures, settings

OVERLAPS = ("synchronous", "shallow", "deep")


@pytest.fixture(scope="module")
def smoke() -> dict[str, dict[str, float]]:
    return {name: figures(overlap=name) for name in OVERLAPS}


def test_throughput_and_lag_rise_with_depth_and_ess_falls(smoke: dict[str, dict[str, float]]) -> None:
    rows = [smoke[name] for name in OVERLAPS]
    for key, rises in {"tokens_per_s": True, "lag_mean": True, "lag_p95": True, "ess_tokens": False}.items():
        values = [row[key] for row in rows]
        assert values == sorted(values, reverse=not rises), key
        assert len(set(values)) == 3, key
    assert smoke["synchronous"]["lag_max"] == 0


def test_a_limit_stops_new_work_and_cancels_none(smoke: dict[str, dict[str, float]]) -> None:
    for name, limit in (("shallow", 4096), ("deep", 32_768)):
        assert smoke[name]["depth_max_tokens"] > limit
        assert smoke[name]["overshoot_tokens"] > 0
        assert smoke[name]["backpressure"] > 0


def test_the_period_is_that_of_the_formulas(smoke: dict[str, dict[str, float]]) -> None:
    asked = settings(overlap="deep")
    assert smoke["deep"]["tokens_per_s"] == pytest.approx(rates_of(asked).trainer, rel=0.03)
    assert smoke["synchronous"]["tokens_per_s"] < smoke["deep"]["tokens_per_s"] < rates_of(asked).arrival


def test_the_same_seed_is_the_same_run_and_another_is_not(smoke: dict[str, dict[str, float]]) -> None:
    assert figures() == smoke["shallow"]
    assert figures("seed=18") != smoke["shallow"]


def test_work_is_the_same_whatever_the_overlap() -> None:
    """Lengths come from a generator of their own."""
    from harness.simulate.world import STREAMS

    assert STREAMS[0] == "lengths"
    longest = [figures("steps=4", "seconds=null", overlap=name)["trained_rollouts"] for name in OVERLAPS]
    assert max(longest) - min(longest) <= 3 * 8
