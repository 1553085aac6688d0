"""The worked numbers of the module, and what has to hold for all numbers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.theory.checkpoint import best_interval, checkpoint_overhead
from harness.theory.ess import ess, ess_from_sums, log_sum_exp
from harness.theory.memory import PROFILES, kv_bytes, rank_bytes, state_bytes
from harness.theory.pipeline import (
    overlap_speedup,
    overlapped_period,
    pipeline_total,
    sequential_period,
    straggler_utilisation,
)

TIMES = st.floats(1e-3, 1e3)
LOG_WEIGHTS = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=50)


def test_kv_cache_of_step_12_2_3() -> None:
    assert kv_bytes(32, 8, 128, 1, 2) == 131_072
    assert kv_bytes(32, 8, 128, 64 * 4096, 2) == 32 * 2**30


def test_sixteen_bytes_is_one_profile_of_several() -> None:
    assert PROFILES["adamw_bf16_master"].per_trained_parameter == 16
    assert {profile.per_trained_parameter for profile in PROFILES.values()} > {16.0}
    assert state_bytes(PROFILES["adamw_float32"], 1_000) == 16_000
    assert rank_bytes(16_000, 8) == 2_000


def test_lora_pays_for_its_own_parameters_only() -> None:
    profile = PROFILES["adamw_bf16_master"]
    assert state_bytes(profile, 1_000_000, 10_000) == 1_000_000 * 2 + 10_000 * 14


def test_pipeline_of_step_12_3_1() -> None:
    assert sequential_period(90, 10) == 100
    assert overlapped_period(90, 10) == 90
    assert round(overlap_speedup(90, 10), 2) == 1.11
    assert pipeline_total(90, 10, 1) == 100
    assert pipeline_total(90, 10, 5) == 100 + 4 * 90
    assert pipeline_total(90, 10, 0) == 0


@given(TIMES, TIMES)
def test_overlap_gains_at_most_two(rollout: float, train: float) -> None:
    assert 1 <= overlap_speedup(rollout, train) <= 2 + 1e-12
    assert overlap_speedup(rollout, rollout) == pytest.approx(2)


def test_straggler_of_step_12_3_2() -> None:
    times = [4, 4, 5, 5, 5, 6, 6, 20]
    assert straggler_utilisation(times) == 55 / 160
    assert round(straggler_utilisation(times), 3) == 0.344


@given(st.lists(TIMES, min_size=1, max_size=30))
def test_utilisation_is_a_share(times: list[float]) -> None:
    assert 1 / len(times) - 1e-9 <= straggler_utilisation(times) <= 1 + 1e-9


@pytest.mark.parametrize("times", [[], [0.0, 0.0]])
def test_no_work_has_no_utilisation(times: list[float]) -> None:
    with pytest.raises(ValueError, match="not defined"):
        straggler_utilisation(times)


@given(st.floats(0.1, 1e3), st.floats(1.0, 1e6))
def test_no_interval_beats_the_best(write: float, between: float) -> None:
    best = best_interval(write, between)
    assert best == pytest.approx(math.sqrt(2 * write * between))
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert checkpoint_overhead(best, write, between) <= checkpoint_overhead(best * factor, write, between)


def test_ess_limits() -> None:
    assert ess(np.zeros(17)) == pytest.approx(17)
    assert ess(np.full(17, 1000.0)) == pytest.approx(17)
    assert ess(np.array([1000.0, 0.0, 0.0])) == pytest.approx(1)
    assert ess(np.array([-1000.0, -1000.0])) == pytest.approx(2)
    assert ess(np.array([0.0])) == pytest.approx(1)
    with pytest.raises(ValueError, match="not defined"):
        ess(np.array([]))


def test_ess_by_hand() -> None:
    weights = np.array([1.0, 2.0, 3.0])
    assert ess(np.log(weights)) == pytest.approx(36 / 14)


@given(LOG_WEIGHTS)
def test_ess_lies_between_one_and_n(log_weights: list[float]) -> None:
    assert 1 - 1e-9 <= ess(np.array(log_weights)) <= len(log_weights) * (1 + 1e-9)


@given(LOG_WEIGHTS, st.floats(-500, 500))
def test_ess_does_not_see_a_common_factor(log_weights: list[float], shift: float) -> None:
    values = np.array(log_weights)
    assert ess(values + shift) == pytest.approx(ess(values), rel=1e-9)


@given(LOG_WEIGHTS, LOG_WEIGHTS)
def test_ess_adds_up_from_parts(first: list[float], second: list[float]) -> None:
    parts = [np.array(first), np.array(second)]
    one = log_sum_exp(np.array([log_sum_exp(part) for part in parts]))
    two = log_sum_exp(np.array([log_sum_exp(2 * part) for part in parts]))
    assert ess_from_sums(one, two) == pytest.approx(ess(np.concatenate(parts)), rel=1e-9)
