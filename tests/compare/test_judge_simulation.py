"""What the statistics promise, held against simulated runs of known truth.

A run's figure is its truth times a machine's factor, shared by both of a pair where there is drift, times noise of its
own. Every bound is the promise and three standard errors of the simulation.
"""

import math
from collections import Counter
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

from harness.compare.effect import POWER, Effect, detectable, paired_effect, power, welch_effect
from harness.compare.gates import LEVEL, STATED_MARGIN, STEP, weights_of
from harness.compare.judge import judge
from harness.compare.judgement import Judgement
from harness.compare.null_test import NullTest
from tests.compare.judged_cells import MEMORY, PARTS, STAGES, arm, busy

RUNS, FAMILIES = 6000, 400
GATES = [STEP, MEMORY, *(f"t_seq_part_seconds[{part}]" for part in PARTS)]
STEP_LEVEL = LEVEL * weights_of(GATES)[STEP] / sum(weights_of(GATES).values())
"""The level at which a step is tested first, beside all other gates."""


def within(share: float, promised: float, runs: int, slack: float = 0.0) -> bool:
    return abs(share - promised) <= slack + 3 * math.sqrt(promised * (1 - promised) / runs)


def simulated(n: int, noise: float, drift: float = 0.0, truth: float = 1.0, runs: int = RUNS) -> Iterator[Effect]:
    generator = np.random.default_rng(n)
    machine = generator.lognormal(0.0, drift, (runs, n))
    ours = truth * machine * generator.lognormal(0.0, noise, (runs, n))
    theirs = machine * generator.lognormal(0.0, noise, (runs, n))
    return (paired_effect(*both) for both in zip(ours.tolist(), theirs.tolist(), strict=True))


@pytest.mark.parametrize("drift", [0.0, 0.2])
@pytest.mark.parametrize(("n", "noise"), [(3, 0.02), (5, 0.02), (5, 0.1), (8, 0.05)])
def test_the_interval_of_pairs_covers_the_truth_in_95_percent(n: int, noise: float, drift: float) -> None:
    held = [found.interval[0] <= 1.3 <= found.interval[1] for found in simulated(n, noise, drift, truth=1.3)]
    assert abs(np.mean(held) - 0.95) < 0.01


@pytest.mark.parametrize(("first", "second"), [((5, 0.02), (5, 0.02)), ((5, 0.02), (8, 0.06)), ((6, 0.05), (4, 0.05))])
def test_the_interval_of_what_is_not_paired_does_too(first: tuple[int, float], second: tuple[int, float]) -> None:
    generator = np.random.default_rng(7)
    ours, theirs = (generator.lognormal(0.0, noise, (RUNS, n)).tolist() for n, noise in (first, second))
    found = [welch_effect(*both).interval for both in zip(ours, theirs, strict=True)]
    assert abs(np.mean([low <= 1.0 <= high for low, high in found]) - 0.95) < 0.01


@pytest.mark.parametrize("n", [5, 8, 10])
def test_a_slowdown_of_5_percent_at_noise_of_2_is_found_at_the_power_that_is_printed(n: int) -> None:
    shift, margin = math.log(1.05), math.log1p(STATED_MARGIN)
    printed = power(shift, Effect(0.0, 0.02 * math.sqrt(2 / n), n - 1, n, paired=True), STEP_LEVEL, margin)
    found = [e.p < STEP_LEVEL and e.shift > margin for e in simulated(n, 0.02, truth=1.05)]
    assert within(float(np.mean(found)), printed, RUNS, slack=1e-3)


@pytest.mark.parametrize(("n", "noise", "margin"), [(5, 0.02, 0.02), (5, 0.002, 0.02), (8, 0.05, 0.04), (3, 0.01, 0.0)])
def test_the_smallest_detectable_change_is_found_in_80_percent(n: int, noise: float, margin: float) -> None:
    truth = 1 + detectable(Effect(0.0, noise * math.sqrt(2 / n), n - 1, n, paired=True), STEP_LEVEL, margin)
    found = [e.p < STEP_LEVEL and e.shift > math.log1p(margin) for e in simulated(n, noise, truth=truth)]
    assert within(float(np.mean(found)), POWER, RUNS, slack=1e-3)


def families(noise: float, runs: int, n: int = 5, truth: float = 1.0, null: bool = False) -> list[list[Judgement]]:
    """Whole comparisons, each with all of its gates and an A/A test of its own."""
    found = []
    for seed in range(runs):
        test = None
        if null:
            arms = arm("null-a", 4 * seed + 2, n, noise), arm("null-b", 4 * seed + 3, n, noise)
            test = NullTest.of(*arms, adapter="reference", max_noise=1.0)
        slower = {"decode": 1 + (truth - 1) / 0.4}
        cells = [*arm("new", 4 * seed, n, noise, slower), *arm("pin", 4 * seed + 1, n, noise)]
        found.append(judge(cells, "new", "pin", test))
    return found


def alarms(families: list[list[Judgement]]) -> float:
    return float(np.mean([any(one.state in {"better", "worse"} for one in family) for family in families]))


@cache
def same(noise: float) -> list[list[Judgement]]:
    return families(noise, FAMILIES)


@pytest.mark.parametrize("noise", [0.005, 0.03, 0.15])
def test_a_thing_against_itself_is_called_different_in_at_most_5_percent_of_comparisons(noise: float) -> None:
    assert alarms(same(noise)) <= LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / FAMILIES)


def test_with_an_a_a_test_it_is_too_and_a_null_test_of_an_honest_machine_rarely_fails() -> None:
    found = families(0.03, 200, null=True)
    assert alarms(found) <= LEVEL
    void = np.mean([any("A/A test" in one.reason for one in family) for family in found])
    assert void <= LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / 200)


def test_no_change_is_said_of_a_change_that_was_sought_in_few_comparisons() -> None:
    """Of a true change of 5 % the interval holds 5 % in 95 of 100, and then "no change" is not said."""
    steps = [one for family in families(0.008, 300, truth=1.05) for one in family if one.name == STEP]
    states = Counter(one.state for one in steps)
    assert states["no change"] <= 0.05 * 300
    assert states["worse"] >= 0.9 * 300
    assert not states["better"]


def test_the_printed_detectable_is_the_machines_on_average() -> None:
    """It rests on the spread of five pairs, which is itself known to about a third."""
    printed = [one.detectable for family in same(0.03) for one in family if one.name == STEP and one.detectable]
    noise = 0.03 * math.hypot(*STAGES.values())
    known = detectable(Effect(0.0, noise * math.sqrt(2 / 5), 4, 5, paired=True), STEP_LEVEL, STATED_MARGIN)
    assert np.median(printed) == pytest.approx(known, rel=0.12)


def test_a_machine_under_random_load_cannot_tell_and_does_not_say_worse() -> None:
    """Bursts of other work: of each cell at random, and of ever more cells as time goes on."""
    generator = np.random.default_rng(11)
    states: Counter[str] = Counter()
    for seed in range(150):
        pin, new = arm("pin", 2 * seed, noise=0.01), arm("new", 2 * seed + 1, noise=0.01)
        slowed = [busy(one, generator, late) for late, one in enumerate([*pin, *new])]
        states.update(one.state for one in judge(slowed, "new", "pin", None))
    assert states["worse"] + states["better"] <= 0.01 * states.total()
    assert states["cannot tell"] >= 0.95 * states.total()
