import math
from itertools import product
from statistics import median, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from harness.compare.statistics import detectable_change, median_interval, paired_ratio

numbers = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_up_to_five_repeats_the_interval_is_their_range(n: int) -> None:
    assert median_interval([float(value) for value in range(n)]) == (0.0, n - 1.0)


def test_one_repeat_has_no_interval() -> None:
    assert median_interval([3.0]) is None
    assert median_interval([]) is None


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_interval_is_that_of_every_resample(n: int) -> None:
    values = [float(value**2) for value in range(n)]
    medians = np.sort([median(resample) for resample in product(values, repeat=n)])
    low, high = (float(np.quantile(medians, q, method="inverted_cdf")) for q in (0.025, 0.975))
    assert median_interval(values) == (low, high)


@given(numbers)
def test_interval_holds_the_median(values: list[float]) -> None:
    interval = median_interval(values)
    assert interval is not None
    assert min(values) <= interval[0] <= median(values) <= interval[1] <= max(values)


def test_interval_of_infinite_values() -> None:
    assert median_interval([1.0, math.inf, math.inf]) == (1.0, math.inf)


@pytest.mark.parametrize(("n", "nominal"), [(5, 0.9375), (9, 0.93)])
def test_simulated_coverage_of_the_median(n: int, nominal: float) -> None:
    generator = np.random.default_rng(12)
    runs = 2000
    hits = 0
    for _ in range(runs):
        interval = median_interval(generator.lognormal(0.0, 0.3, n).tolist())
        assert interval is not None
        hits += interval[0] <= 1.0 <= interval[1]
    assert abs(hits / runs - nominal) < 4 * math.sqrt(nominal * (1 - nominal) / runs) + 0.02 * (n != 5)


def test_simulated_coverage_of_the_paired_ratio() -> None:
    generator = np.random.default_rng(5)
    runs, hits = 2000, 0
    for _ in range(runs):
        machine = generator.lognormal(0.0, 0.5, 5)  # shared by both of a pair, so it cancels
        ratio = paired_ratio(
            (2.0 * machine * generator.lognormal(0.0, 0.1, 5)).tolist(),
            (machine * generator.lognormal(0.0, 0.1, 5)).tolist(),
        )
        assert ratio is not None
        assert ratio.low is not None
        assert ratio.high is not None
        hits += ratio.low <= 2.0 <= ratio.high
    assert abs(hits / runs - 0.95) < 0.02


def test_ratio_is_paired_by_repeat_and_leaves_out_what_is_missing() -> None:
    ratio = paired_ratio([2.0, None, 8.0, 0.0], [1.0, 5.0, 1.0, 3.0])
    assert ratio is not None
    assert ratio.pairs == 2
    assert ratio.value == pytest.approx(4.0)
    alone = paired_ratio([3.0], [2.0])
    assert alone is not None
    assert (alone.value, alone.low, alone.high, alone.pairs) == (pytest.approx(1.5), None, None, 1)
    assert paired_ratio([0.0, None], [1.0, 2.0]) is None


def test_detectable_change_is_found_with_the_power_it_promises() -> None:
    values = [1.0, 1.02, 0.98, 1.01, 0.99]
    change = detectable_change(values)
    assert change is not None
    generator = np.random.default_rng(3)
    spread = stdev([math.log(value) for value in values])
    runs, n = 4000, len(values)
    first = generator.normal(0.0, spread, (runs, n))
    second = generator.normal(math.log1p(change), spread, (runs, n))
    pooled = np.sqrt((first.var(axis=1, ddof=1) + second.var(axis=1, ddof=1)) / n)
    found = np.abs(second.mean(axis=1) - first.mean(axis=1)) / pooled > t.ppf(0.975, 2 * n - 2)
    assert abs(found.mean() - 0.8) < 0.03


def test_detectable_change_of_steady_few_or_impossible_values() -> None:
    assert detectable_change([2.0, 2.0, 2.0]) == 0.0
    assert detectable_change([2.0]) is None
    assert detectable_change([2.0, 0.0]) is None
    assert detectable_change([2.0, math.inf]) is None
