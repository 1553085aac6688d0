"""The learning check: how often it is wrong where both learn alike, and what it finds where they do not."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from harness.compare.api import compare_rows, learning_checks
from harness.compare.learning import CURVE, LEAST_REPEATS, LearningCheck, band, learning_check
from harness.compare.results import CellResult, groups_of
from harness.measure.values import Value

ENDS = ("1280", "2560", "3840", "5120", "6400")
RISE = np.linspace(0.45, 0.75, len(ENDS))
SPEED = Value("output_tokens_per_second", 10.0, "tokens/s", "spans.t_end", 3)


def cells(adapter: str, curves: Sequence[Sequence[float]], track: str = "free") -> list[CellResult]:
    found = []
    for repeat, curve in enumerate(curves):
        values = [Value(CURVE, float(v), "reward", "e", 1280, variant=end) for end, v in zip(ENDS, curve, strict=True)]
        found.append(CellResult(adapter, "colocated_sync", track, repeat, "ok", None, None, [*values, SPEED]))
    return found


def seeds(generator: np.random.Generator, repeats: int, speed: float = 1.0) -> list[npt.NDArray[np.float64]]:
    """Curves of 0 or 1 rewards: a seed learns a little faster or slower than another, and samples are few."""
    curves = []
    for _ in range(repeats):
        pace = speed * generator.normal(1.0, 0.15)
        truth = np.clip(RISE[0] + (RISE - RISE[0]) * pace + generator.normal(0, 0.01), 0.01, 0.99)
        curves.append(generator.binomial(1280, truth) / 1280)
    return curves


def check_of(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> LearningCheck:
    groups = groups_of([*cells("mine", ours), *cells("reference", theirs)])
    check = learning_check(groups, ("mine", "colocated_sync", "free"), "reference")
    assert check is not None
    return check


@pytest.mark.parametrize(("theirs", "ours"), [(3, 3), (5, 5), (5, 1), (10, 5)])
def test_simulated_rate_of_false_alarms(theirs: int, ours: int) -> None:
    """Parts of one seed go together, so that five bands at a fifth of the level are on the safe side."""
    generator, runs = np.random.default_rng(3), 1000
    results = [check_of(seeds(generator, ours), seeds(generator, theirs)).result for _ in range(runs)]
    told = runs - results.count("unknown")
    assert told > 0.9 * runs
    assert results.count("outside") / told <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / told)


@pytest.mark.parametrize(("n", "m"), [(3, 1), (5, 5), (8, 3)])
def test_simulated_coverage_of_one_band(n: int, m: int) -> None:
    generator, runs, hits = np.random.default_rng(8), 4000, 0
    for _ in range(runs):
        low, high = band(generator.normal(10.0, 1.0, n).tolist(), m, parts=1)
        hits += low <= generator.normal(10.0, 1.0, m).mean() <= high
    assert abs(hits / runs - 0.95) < 4 * math.sqrt(0.95 * 0.05 / runs)


@pytest.mark.parametrize("speed", [0.0, -0.5])
def test_one_that_does_not_learn_is_found(speed: float) -> None:
    generator, runs = np.random.default_rng(4), 200
    found = [check_of(seeds(generator, 5, speed), seeds(generator, 5)).result for _ in range(runs)]
    assert found.count("outside") > 0.95 * runs


def test_it_is_not_told_by_too_few_repeats_or_where_the_reference_does_not_learn() -> None:
    generator = np.random.default_rng(5)
    few = check_of(seeds(generator, 5), seeds(generator, LEAST_REPEATS - 1))
    assert (few.result, few.breach) == ("unknown", None)
    assert "it takes 3 repeats of reference" in few.said
    flat = check_of(seeds(generator, 5), [[0.5, 0.51, 0.49, 0.5, 0.5], [0.5] * 5, [0.5, 0.5, 0.5, 0.5, 0.49]])
    assert "has not learned in this run" in flat.said
    assert learning_checks(cells("reference", seeds(generator, 5))) == [], "it is not held against itself"


def test_seeds_that_agree_to_the_last_digit_leave_room_for_one_part_in_a_hundred() -> None:
    same = [[0.5, 0.6, 0.7, 0.8, 0.9]] * 5
    assert check_of([[value * 1.005 for value in same[0]]], same).result == "within"
    assert check_of([[value * 1.02 for value in same[0]]], same).result == "outside"


def test_a_row_that_does_not_learn_is_greyed_and_says_why() -> None:
    generator = np.random.default_rng(6)
    theirs, ours = seeds(generator, 5), seeds(generator, 5, speed=-1.0)
    rows = compare_rows([*cells("mine", ours), *cells("reference", theirs), *cells("other", seeds(generator, 5))])
    states = {(row.adapter, row.measure): (row.state, row.reason) for row in rows if row.measure == SPEED.tag}
    assert states["other", SPEED.tag] == states["reference", SPEED.tag] == ("measured", None)
    state, reason = states["mine", SPEED.tag]
    assert state == "not comparable"
    assert "its reward at equal samples leaves the band of reference in" in str(reason)
    curve = [row for row in rows if (row.adapter, row.measure) == ("mine", CURVE)]
    assert {row.state for row in curve} == {"not comparable"}
    assert all(row.value is not None for row in curve)


def test_speed_on_fixed_lengths_is_never_judged_by_learning() -> None:
    generator = np.random.default_rng(7)
    both = [*cells("mine", seeds(generator, 5, -1.0), "fixed_length"), *cells("reference", seeds(generator, 5), "free")]
    assert learning_checks(both) == []
