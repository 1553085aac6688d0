"""The formulas of an effect, against others' and against what they promise."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import nct, t, ttest_ind, ttest_rel

from harness.compare.effect import POWER, Effect, detectable, holm, paired_effect, power, welch_effect

positive = st.floats(1e-3, 1e6)
sides = st.integers(2, 9).flatmap(
    lambda n: st.tuples(st.lists(positive, min_size=n, max_size=n), st.lists(positive, min_size=n, max_size=n))
)


def test_pairs_are_students_test_of_the_log_ratios() -> None:
    generator = np.random.default_rng(1)
    ours, theirs = generator.lognormal(0.05, 0.02, 6), generator.lognormal(0.0, 0.02, 6)
    found, other = paired_effect(ours.tolist(), theirs.tolist()), ttest_rel(np.log(ours), np.log(theirs))
    assert found.p == pytest.approx(float(other.pvalue))
    interval = other.confidence_interval()
    assert np.log(found.interval) == pytest.approx([float(interval.low), float(interval.high)])


def test_what_shares_nothing_is_welchs_test_of_the_logs() -> None:
    generator = np.random.default_rng(2)
    ours, theirs = generator.lognormal(0.05, 0.02, 4), generator.lognormal(0.0, 0.06, 9)
    found = welch_effect(ours.tolist(), theirs.tolist())
    other = ttest_ind(np.log(ours), np.log(theirs), equal_var=False)
    assert found.p == pytest.approx(float(other.pvalue))
    assert found.degrees == pytest.approx(float(other.df))
    assert (found.pairs, found.paired) == (4, False)


@given(sides)
@settings(max_examples=60, deadline=None)
def test_the_other_way_round_the_ratio_is_its_inverse(both: tuple[list[float], list[float]]) -> None:
    for effect_of in (paired_effect, welch_effect):
        there, back = effect_of(*both), effect_of(*both[::-1])
        assert there.ratio * back.ratio == pytest.approx(1.0)
        assert there.p == pytest.approx(back.p)
        assert math.log(there.interval[0]) == pytest.approx(-math.log(back.interval[1]), abs=1e-9)


@given(sides, positive)
@settings(max_examples=60, deadline=None)
def test_the_unit_is_nothing(both: tuple[list[float], list[float]], factor: float) -> None:
    scaled = paired_effect(*([factor * value for value in side] for side in both))
    assert scaled.shift == pytest.approx(paired_effect(*both).shift, abs=1e-9)


def test_orders_of_magnitude_are_no_error_of_arithmetic() -> None:
    effect = paired_effect([1e-300, 1e300], [1.0, 1.0])
    assert effect.interval == (0.0, math.inf)
    assert detectable(effect, 0.01, 0.02) == math.inf


@pytest.mark.parametrize("values", [[2.0, 2.0, 2.0], [3.0, 3.0, 3.0]])
def test_what_agrees_to_the_last_digit_has_no_error(values: list[float]) -> None:
    for found in (paired_effect(values, [2.0] * 3), welch_effect(values, [2.0] * 3)):
        assert found.error == 0
        assert found.p == (1.0 if values[0] == 2.0 else 0.0)
        assert detectable(found, 0.05, 0.02) == 0.02


@pytest.mark.parametrize("degrees", [2, 4, 9])
@pytest.mark.parametrize("level", [0.05, 0.0125])
def test_with_no_margin_the_power_is_that_of_the_noncentral_t(degrees: int, level: float) -> None:
    effect = Effect(0.0, 0.01, degrees, degrees + 1, paired=True)
    critical = float(t.ppf(1 - level / 2, degrees))
    for shift in (0.02, 0.04, 0.08):  # so far from 0 the other tail adds nothing
        noncentral = float(nct.sf(critical, degrees, shift / 0.01))
        assert power(shift, effect, level, 0.0) == pytest.approx(noncentral, abs=2e-3)
    assert power(0.0, effect, level, 0.0) == pytest.approx(level, abs=2e-3)


@pytest.mark.parametrize("error", [1e-4, 0.003, 0.05])
@pytest.mark.parametrize("margin", [0.0, 0.02, 0.1])
def test_the_smallest_detectable_is_past_the_margin_and_has_its_power(error: float, margin: float) -> None:
    effect = Effect(0.0, error, 4, 5, paired=True)
    found = detectable(effect, 0.025, margin)
    assert found > margin
    assert power(math.log1p(found), effect, 0.025, math.log1p(margin)) == pytest.approx(POWER, abs=1e-6)


def test_the_anchors_table_of_detectable_changes() -> None:
    """Two groups of 5 at a spread of 2 %: 4.0 % (research on measurement, section 3)."""
    effect = Effect(0.0, 0.02 * math.sqrt(2 / 5), 8, 5, paired=False)
    assert math.log1p(detectable(effect, 0.05, 0.0)) == pytest.approx(0.040, abs=0.001)


def test_holm_by_hand() -> None:
    found = holm({"a": 0.01, "b": 0.04, "c": 0.03}, dict.fromkeys("abc", 1.0))
    assert found == pytest.approx({"a": 0.03, "c": 0.06, "b": 0.06})


def test_a_weight_is_a_share_of_the_level() -> None:
    found = holm({"a": 0.02, "b": 0.02}, {"a": 0.75, "b": 0.25})
    assert found == pytest.approx({"a": 0.02 / 0.75, "b": 0.02 / 0.75})


@given(
    st.dictionaries(st.text(max_size=3), st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=8), st.randoms()
)
@settings(max_examples=60, deadline=None)
def test_holm_never_helps_and_keeps_the_order(found: dict[str, float], random: "np.random.Generator") -> None:
    weights = {name: random.random() + 0.01 for name in found}
    adjusted = holm(found, weights)
    assert all(p * (1 - 1e-9) <= adjusted[name] <= 1 for name, p in found.items())
    order = sorted(found, key=lambda name: found[name] / weights[name])
    assert all(adjusted[first] <= adjusted[second] for first, second in pairwise(order))
