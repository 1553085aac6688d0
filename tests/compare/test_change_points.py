"""Change points: exact segmentation, few false alarms on noise of any shape, a change of three sigma found."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.compare import change_points as module
from harness.compare.change_points import (
    ALARM,
    LEAST_POINTS,
    LEAST_SEGMENT,
    POWER,
    Searched,
    best_segments,
    change_points,
    too_few,
)

pytest.importorskip("ruptures", reason="it has no release for this Python")
LINES = 150


def test_a_short_line_is_not_searched() -> None:
    assert too_few(LEAST_POINTS - 1) == f"too few points ({LEAST_POINTS - 1}), change points need {LEAST_POINTS}"
    assert too_few(LEAST_POINTS) is None
    assert change_points([1.0] * 4 + [9.0] * 5) == Searched()


def test_a_level_that_never_moves_has_no_change() -> None:
    assert change_points([3.0] * 30) == Searched()
    assert change_points([0.0] * 30) == Searched()


def test_a_change_says_where_and_by_how_much() -> None:
    (change,) = change_points([1.0, 1.01] * 6 + [2.0, 2.02] * 6).changes
    assert (change.index, change.before, change.after) == (12, 1.005, 2.01)
    assert change.ratio == pytest.approx(2.0)


def test_what_may_be_zero_has_no_ratio() -> None:
    found = change_points([0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 9.0, 9.0, 9.0, 9.0, 10.0, 9.0, 9.0])
    (change,) = found.changes
    assert found.detectable is None
    assert (change.index, change.before, change.after, change.ratio) == (9, 0.0, 9.0, None)


def test_a_level_that_comes_back_has_two_changes() -> None:
    noise = np.random.default_rng(5).normal(0, 0.01, 36)
    values = [1.0] * 12 + [1.1] * 12 + [1.0] * 12 + noise
    assert _places(values) == [12, 24]


def _places(values: Any, lines: int = 1) -> list[int]:
    return [change.index for change in change_points(list(values), lines).changes]


@pytest.fixture
def fewer_shuffles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHUFFLES", 599)


NOISES = {
    "normal": lambda generator, n: generator.normal(size=n),
    "with outliers": lambda generator, n: generator.standard_t(2, size=n),
    "skewed": lambda generator, n: generator.exponential(size=n),
    "counts": lambda generator, n: generator.poisson(1.5, size=n).astype(float),
}


@pytest.mark.parametrize(("noise", "n"), [("normal", 10), ("normal", 25), *((name, 15) for name in NOISES)])
def test_noise_has_a_change_in_as_few_lines_as_is_stated(noise: str, n: int, fewer_shuffles: None) -> None:
    """More alarms than the bound have a probability below 1 in 1,000 at the stated rate."""
    generator = np.random.default_rng(11)
    alarms = sum(bool(_places(NOISES[noise](generator, n))) for _ in range(LINES))
    assert alarms <= ALARM * LINES + 3.1 * (ALARM * (1 - ALARM) * LINES) ** 0.5


def _moved(generator: Any, n: int, change: float) -> Any:
    return np.exp(0.02 * generator.normal(size=n) + change * (np.arange(n) >= n // 2))


def test_a_change_of_three_sigma_is_found(fewer_shuffles: None) -> None:
    generator = np.random.default_rng(3)
    found = [_places(_moved(generator, 24, 0.06), lines=10) for _ in range(LINES)]
    assert sum(len(places) == 1 for places in found) >= 0.93 * LINES
    assert sum(any(abs(place - 12) <= 1 for place in places) for places in found) >= 0.93 * LINES


def test_what_is_said_to_be_detectable_is_found_as_often_as_is_said(fewer_shuffles: None) -> None:
    generator = np.random.default_rng(7)
    still = [change_points(list(_moved(generator, 20, 0.0))).detectable for _ in range(30)]
    change = float(np.log1p(np.median([one for one in still if one is not None])))
    share = sum(bool(_places(_moved(generator, 20, change))) for _ in range(LINES)) / LINES
    assert abs(share - POWER) < 0.12


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.integers(0, 20), min_size=LEAST_POINTS, max_size=13),
    penalty=st.floats(0.5, 200),
)
@example(values=[0, 0, 0, 0, 0, 3, 3, 0, 16, 0], penalty=1.0)  # here the PELT of ruptures 1.1.10 is wrong
def test_the_segmentation_is_the_best_there_is(values: list[int], penalty: float) -> None:
    line = np.asarray(values, dtype=float)
    edges = best_segments(line, penalty)
    assert _cost(line, edges, penalty) == pytest.approx(min(_cost(line, e, penalty) for e in _all(len(line))))


def _cost(line: Any, edges: list[int], penalty: float) -> float:
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
