"""Change points of a line of dated figures: where its level moved by more than its own noise explains.

The segmentation is the one of the least squared distance to its segments' means, plus a penalty for each change. It is
exact: for each number of changes the best segmentation is found by dynamic programming (Auger and Lawrence 1989, as
`ruptures` has it), and a number is tried as long as its penalty alone does not cost more. PELT would be faster, but
where segments have a least length that of ruptures 1.1.10 misses the best one in 5 % of random lines (see its test).

The penalty is what decides, and it is measured on the line itself: values without a change are exchangeable, so that
the gain of the best single change in a line that was shuffled is what noise alone reaches. It is the `1 - alarm`
quantile of that gain over `SHUFFLES` shuffles, in units of the mean squared difference of neighbours (von Neumann
1941), which a few changes of level hardly move. No distribution is assumed, an outlier included; that points are
independent of each other is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
from scipy.stats import norm

from harness.errors import PrerequisiteError

LEAST_POINTS = 10
"""At so many a change of three times the noise, in the middle of a line that is searched alone, is found nine times in
ten; with fewer it is missed more often."""
LEAST_SEGMENT = 3
"""Points that a level has to last for: one or two are an outlier."""
ALARM = 0.05
"""The chance that a report shows a change where there is none, over all of its lines."""
POWER = 0.8
SHUFFLES = 9_999
SEED = 17
CHUNK = 2**22
"""Numbers that are held at once while a line is shuffled."""


@dataclass(frozen=True)
class Change:
    """A change of level.

    Attributes:
        index: of the first point at the new level.
        before, after: the medians of the levels on both sides.
        ratio: `after` over `before`; None where one of them is not above 0. It has no interval: its place was chosen by
            looking at the values, so that one would be too narrow.
    """

    index: int
    before: float
    after: float
    ratio: float | None


def too_few(n: int) -> str | None:
    """Why a line of `n` points is not searched; None where it is."""
    return None if n >= LEAST_POINTS else f"too few points ({n}), change points need {LEAST_POINTS}"


@dataclass(frozen=True)
class Searched:
    """What was found in a line.

    Attributes:
        changes: in their order.
        detectable: the smallest change in the middle of the line that would be found with a probability of `POWER`, as
            a share of the level (0.05: 5 %); None where that has no meaning: a line that was not searched, that never
            moves at all, or whose values are not all above 0.
    """

    changes: tuple[Change, ...] = ()
    detectable: float | None = None


def change_points(values: Sequence[float], lines: int = 1) -> Searched:
    """The changes of level in a line; none where it is shorter than `LEAST_POINTS`.

    Args:
        values: in the order of time, all finite. Where all are above 0 their logarithms are searched, so that a change
            is a ratio.
        lines: how many lines are searched beside each other; they share `ALARM` (Bonferroni).

    Raises:
        PrerequisiteError: there is no `ruptures` for this Python.
    """
    if too_few(len(values)):
        return Searched()
    positive = min(values) > 0
    searched = np.log(values) if positive else np.asarray(values, dtype=float)
    noise = float(np.mean(np.diff(searched) ** 2)) / 2
    if noise == 0:
        return Searched()
    gain = _reached_by_noise(searched, ALARM / lines)
    edges = [0, *best_segments(searched, noise * gain)]
    levels = [median(values[start:end]) for start, end in pairwise(edges)]
    sides = zip(edges[1:], pairwise(levels), strict=False)
    changes = [Change(at, was, now, now / was if was > 0 and now > 0 else None) for at, (was, now) in sides]
    return Searched(tuple(changes), _detectable(len(values), noise, gain) if positive else None)


def _detectable(n: int, noise: float, gain: float) -> float:
    """A change d in the middle gains n d^2 / 4 from the mean, whose root has the standard error of the noise: the
    smallest d that passes the penalty with probability `POWER`, as a share."""
    return math.expm1(2 * math.sqrt(noise / n) * (math.sqrt(gain) + float(norm.ppf(POWER))))


def best_segments(values: Any, penalty: float) -> list[int]:
    """The ends of the segments, none shorter than `LEAST_SEGMENT`, with the least squared error and penalty together.

    Raises:
        PrerequisiteError: there is no `ruptures` for this Python.
    """
    search, n = _search().fit(values.reshape(-1, 1)), len(values)
    best, least = [n], _squared_error(values, [n])
    for changes in range(1, n // LEAST_SEGMENT):
        if changes * penalty >= least:
            break
        ends = search.predict(n_bkps=changes)
        cost = _squared_error(values, ends) + changes * penalty
        best, least = (ends, cost) if cost < least else (best, least)
    return best


def _squared_error(values: Any, ends: Sequence[int]) -> float:
    parts = (values[start:end] for start, end in pairwise([0, *ends]))
    return sum(float(((part - part.mean()) ** 2).sum()) for part in parts)


def _search() -> Any:
    try:
        import ruptures  # type: ignore[import-untyped]
    except ImportError as error:
        raise PrerequisiteError(
            "change points need the package ruptures, which has no release for this Python: use Python 3.11 to 3.13"
        ) from error
    return ruptures.KernelCPD(kernel="linear", min_size=LEAST_SEGMENT)


def _reached_by_noise(values: Any, alarm: float) -> float:
    """The gain of the best single change, over the line's noise, that a share `alarm` of its shuffles exceeds."""
    generator = np.random.default_rng(SEED)
    rows = max(1, CHUNK // len(values))
    gains = []
    for start in range(0, SHUFFLES, rows):
        lines = np.tile(values, (min(rows, SHUFFLES - start), 1))
        gains.append(_best_gain(generator.permuted(lines, axis=1)))
    ordered = np.sort(np.concatenate(gains))
    return float(ordered[min(SHUFFLES - 1, math.ceil((1 - alarm) * (SHUFFLES + 1)) - 1)])


def _best_gain(lines: Any) -> Any:
    """Of each line (a row), by how much the best single change lowers the squared error, over the line's noise."""
    n = lines.shape[1]
    sums = np.cumsum(lines - lines.mean(axis=1, keepdims=True), axis=1)
    at = np.arange(LEAST_SEGMENT, n - LEAST_SEGMENT + 1)
    gain = (sums[:, at - 1] ** 2 * n / (at * (n - at))).max(axis=1)
    return gain / (np.mean(np.diff(lines, axis=1) ** 2, axis=1) / 2)
