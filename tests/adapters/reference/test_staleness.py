"""What is done about stale records: pure decisions, each naming its policy and the value that made it."""

import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.reference.samples import Sample
from adapters.reference.settings import Settings
from adapters.reference.staleness import REJECTED, StalenessPolicy, ess_share
from harness.theory.ess import ess
from tests.adapters.reference.cells import settings
from tests.adapters.reference.groups import sample


@cache
def _plain() -> Settings:
    return settings(Path(gettempdir()), task={"inner_epochs": 3})


def policy(**changes: Any) -> StalenessPolicy:
    plain = _plain()
    return StalenessPolicy(replace(plain, staleness=replace(plain.staleness, **changes)))


def scored(name: str, logs: list[float], version: int = 0) -> Sample:
    """A sample whose tokens have these log-ratios of old to behaviour policy."""
    made = sample(name, len(logs), version)
    return replace(made, old=[-0.5 + log for log in logs])


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 5), st.floats(0, 60), st.floats(0, 60))
def test_a_record_is_rejected_exactly_past_its_threshold(
    version: int, ahead: int, most: int, waited: float, longest: float
) -> None:
    one, now = sample("a.g0", 3, version), version + ahead
    assert policy().rejects(one, now, waited) is None, "off unless asked for"
    by_lag = policy(max_lag=most).rejects(one, now, waited)
    assert by_lag == (f"{REJECTED}: lag {ahead}, max_lag {most}" if ahead > most else None)
    by_age = policy(max_age_s=longest).rejects(one, now, waited)
    assert (by_age is not None) == (waited > longest)
    both = policy(max_lag=most, max_age_s=longest).rejects(one, now, waited)
    assert both == (by_lag or by_age)


def test_reasons_name_the_policy_and_its_value() -> None:
    one = sample("a.g0", 3, version=2)
    assert policy(max_lag=1).rejects(one, 4, 0.0) == "rejected_stale: lag 2, max_lag 1"
    assert policy(max_age_s=30.0).rejects(one, 4, 31.2) == "rejected_stale: waited longer than max_age_s 30"
    stale = [scored("a.g0", [2.0, 1.0], version=2), scored("a.g1", [0.0, 0.0], version=2)]
    plan = policy(stale_epochs=1, ess_floor=0.9, level="sequence").plan(stale, 4)
    share = (math.exp(3) + 1) ** 2 / (math.exp(6) + 1) / 2
    assert plan.reasons == (
        "stale_epochs: 1 of 3 epochs at lag 2",
        f"ess_floor: learning rate x {share:.3f}, ESS/n below 0.9",
    )
    assert plan.epochs == 1
    assert plan.lr_scale == pytest.approx(share)


def test_a_fresh_batch_with_equal_weights_is_left_alone() -> None:
    fresh = [scored("a.g0", [0.0, 0.0], version=4), scored("a.g1", [0.0], version=4)]
    plan = policy(stale_epochs=1, ess_floor=0.9).plan(fresh, 4)
    assert (plan.epochs, plan.lr_scale, plan.reasons) == (3, 1.0, ())
    assert policy(stale_epochs=1).plan([], 4).epochs == 3
    assert policy(stale_epochs=5).plan([sample("a.g0", 1, 0)], 4).reasons == ()


LOGS = st.lists(st.lists(st.floats(-800, 800), min_size=1, max_size=5), min_size=1, max_size=6)


@given(LOGS, st.floats(0, 1), st.sampled_from(["token", "sequence"]))
def test_the_learning_rate_falls_to_ess_below_its_floor_and_never_rises(
    logs: list[list[float]], floor: float, level: str
) -> None:
    samples = [scored(f"a.g{place}", own) for place, own in enumerate(logs)]
    share = ess_share(samples, level)
    ratios = [[(-0.5 + log) + 0.5 for log in own] for own in logs]
    weights = np.concatenate(ratios) if level == "token" else np.array([math.fsum(row) for row in ratios])
    assert share == pytest.approx(ess(weights) / len(weights), rel=1e-9)
    plan = policy(ess_floor=floor, level=level).plan(samples, 0)
    assert share is not None
    assert plan.lr_scale == (share if share < floor else 1.0)
    assert 0 < plan.lr_scale <= 1


def test_what_is_not_scored_has_no_ess_and_an_observation_no_weight() -> None:
    assert ess_share([sample("a.g0", 3)], "token") is None
    one = scored("a.g0", [1.0, 9.0, 1.0])
    behaviour = [value if place != 1 else None for place, value in enumerate(one.completion.logprobs)]
    seen = replace(one, completion=replace(one.completion, mask=[1, 0, 1], logprobs=behaviour))
    assert ess_share([seen], "token") == pytest.approx(1.0)


@given(st.integers(1, 9), st.integers(-50, 50), st.booleans(), st.integers(1, 9))
def test_requests_in_flight_move_by_one_and_stay_in_their_range(
    requests: int, growth: int, starved: bool, most: int
) -> None:
    assert policy().rebalanced(requests, growth, starved=starved, most=most) == requests
    after = policy(rebalance=True).rebalanced(requests, growth, starved=starved, most=most)
    wanted = requests + 1 if starved else requests - 1 if growth > 0 else requests
    assert after == min(max(wanted, 1), most)


def test_every_so_many_batches_one_is_a_control() -> None:
    assert not any(policy().is_control(batch) for batch in range(9))
    assert [batch for batch in range(9) if policy(sync_every=4).is_control(batch)] == [0, 4, 8]
