"""Change points: exact segmentation, few false alarms on noise of any shape, a change of three sigma found."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.compare import change_points as module
from harness.compare.change_points import ALARM, LEAST_POINTS, LEAST_SEGMENT, change_points, too_few

LINES = 200


def test_a_short_line_is_not_searched() -> None:
    assert too_few(LEAST_POINTS - 1) == f"too few points ({LEAST_POINTS - 1}), change points need {LEAST_POINTS}"
    assert too_few(LEAST_POINTS) is None
    assert change_points([1.0] * 4 + [9.0] * 5) == []


def test_a_level_that_never_moves_has_no_change() -> None:
    assert change_points([3.0] * 30) == []
    assert change_points([0.0] * 30) == []


def test_a_change_says_where_and_by_how_much() -> None:
    (change,) = change_points([1.0, 1.01] * 6 + [2.0, 2.02] * 6)
    assert (change.index, change.before, change.after) == (12, 1.005, 2.01)
    assert change.ratio == pytest.approx(2.0)


def test_what_may_be_zero_has_no_ratio() -> None:
    (change,) = change_points([0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 9.0, 9.0, 9.0, 9.0, 10.0, 9.0, 9.0])
    assert (change.index, change.before, change.after, change.ratio) == (9, 0.0, 9.0, None)


def test_a_level_that_comes_back_has_two_changes() -> None:
    noise = np.random.default_rng(5).normal(0, 0.01, 36)
    values = [1.0] * 12 + [1.1] * 12 + [1.0] * 12 + noise
    assert [change.index for change in change_points(list(values))] == [12, 24]


@pytest.fixture
def fewer_shuffles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHUFFLES", 999)


NOISES = {
    "normal": lambda generator, n: generator.normal(size=n),
    "with outliers": lambda generator, n: generator.standard_t(2, size=n),
    "skewed": lambda generator, n: generator.exponential(size=n),
    "counts": lambda generator, n: generator.poisson(1.5, size=n).astype(float),
}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("n", [10, 25])
def test_noise_has_a_change_in_as_few_lines_as_is_stated(noise: str, n: int, fewer_shuffles: None) -> None:
    """The bound is that of 200 lines at the stated rate: more alarms than it have a probability below 1 in 1,000."""
    generator = np.random.default_rng(11)
    alarms = sum(bool(change_points(list(NOISES[noise](generator, n)))) for _ in range(LINES))
    assert alarms <= ALARM * LINES + 3.1 * (ALARM * (1 - ALARM) * LINES) ** 0.5


def test_a_change_of_three_sigma_is_found(fewer_shuffles: None) -> None:
    generator, found, near = np.random.default_rng(3), 0, 0
    for _ in range(LINES):
        values = np.exp(0.02 * (generator.normal(size=24) + 3 * (np.arange(24) >= 12)))
        places = [change.index for change in change_points(list(values), lines=10)]
        found += len(places) == 1
        near += any(abs(place - 12) <= 1 for place in places)
    assert found >= 0.93 * LINES
    assert near >= 0.93 * LINES


@settings(max_examples=25, deadline=None)
@given(
    values=st.lists(st.integers(0, 20), min_size=LEAST_POINTS, max_size=13),
    penalty=st.floats(0.5, 200),
)
def test_the_segmentation_is_the_best_there_is(values: list[int], penalty: float) -> None:
    line = np.asarray(values, dtype=float)
    edges = module._search().fit(line).predict(pen=penalty)
    assert _cost(line, edges, penalty) == pytest.approx(min(_cost(line, e, penalty) for e in _all(len(line))))


def _cost(line: np.ndarray, edges: list[int], penalty: float) -> float:
    parts = [line[start:end] for start, end in itertools.pairwise([0, *edges])]
    return sum(float(((part - part.mean()) ** 2).sum()) for part in parts) + penalty * (len(edges) - 1)


def _all(n: int) -> list[list[int]]:
    found = []
    for count in range(n // LEAST_SEGMENT):
        for inner in itertools.combinations(range(1, n), count):
            edges = [*inner, n]
            if all(end - start >= LEAST_SEGMENT for start, end in itertools.pairwise([0, *edges])):
                found.append(edges)
    return found
