"""What a few repeats can say: median, interval, ratio, smallest detectable change. Nothing here is random."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, stdev
from typing import TypeGuard

from scipy.stats import binom

from harness.compare.effect import CONFIDENCE, Effect, detectable, paired_effect

INTERVAL_NOTE = (
    "The interval is the percentile bootstrap interval of the median over the repeats, from the exact bootstrap "
    "distribution. Up to 5 repeats it is [smallest, largest], which covers the true median with probability "
    "1 - 2^(1-n): 75 % at 3 repeats, 93.75 % at 5. With one repeat there is none."
)
"""For the footnote of a report."""


def _median_distribution(ordered: Sequence[float]) -> list[tuple[float, float]]:
    """The exact bootstrap distribution of the median of n sorted values: (median, probability), unsorted.

    For even n the median is the mean of the order statistics m and m + 1 of the resample, whose joint probability is
    that of m draws with maximum i and n - m draws with minimum j.
    """
    n = len(ordered)
    if n % 2:
        at_most = [float(binom.sf(n // 2, n, i / n)) for i in range(n + 1)]
        return [(ordered[i], at_most[i + 1] - at_most[i]) for i in range(n)]
    m = n // 2
    at_most = [float(binom.sf(m - 1, n, i / n)) for i in range(n + 1)]
    top = [((i + 1) ** m - i**m) / n**m for i in range(n)]
    bottom = [((n - j) ** m - (n - j - 1) ** m) / n**m for j in range(n)]
    pairs = []
    for i in range(n):
        apart = [(j, math.comb(n, m) * top[i] * bottom[j]) for j in range(i + 1, n)]
        pairs += [((ordered[i] + ordered[j]) / 2, chance) for j, chance in apart]
        pairs.append((ordered[i], at_most[i + 1] - at_most[i] - sum(chance for _, chance in apart)))
    return pairs


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """The percentile bootstrap interval of the median (Efron 1979), computed exactly; see `INTERVAL_NOTE`.

    At n = 5 it is [min, max] and covers the true median with probability 93.75 %. None for fewer than 2 values.
    """
    if len(values) < 2:
        return None
    tail, below = (1 - confidence) / 2, 0.0
    low = high = None
    for value, chance in sorted(_median_distribution(sorted(values))):
        below += chance
        low = value if low is None and below >= tail else low
        high = value if high is None and below >= 1 - tail - 1e-12 else high
    assert low is not None
    assert high is not None
    return low, high


@dataclass(frozen=True)
class Ratio:
    """A ratio to the reference over `pairs` repeats, with a 95 % interval (None with one pair)."""

    value: float
    low: float | None
    high: float | None
    pairs: int


def _has_log(value: float | None) -> TypeGuard[float]:
    return value is not None and 0 < value < math.inf


def paired_ratio(values: Sequence[float | None], reference: Sequence[float | None]) -> Ratio | None:
    """The geometric mean of `values[i] / reference[i]`, with Student's t interval of the mean log ratio.

    Repeats are interleaved, so those of the same number saw the same machine. A pair counts where both values are
    above 0 and finite; None where no pair does.
    """
    pairs = [(a, b) for a, b in zip(values, reference, strict=False) if _has_log(a) and _has_log(b)]
    if not pairs:
        return None
    if len(pairs) < 2:
        ((value, its),) = pairs
        return Ratio(value / its, None, None, 1)
    effect = paired_effect([value for value, _ in pairs], [its for _, its in pairs])
    return Ratio(effect.ratio, *effect.interval, effect.pairs)


def detectable_change(values: Sequence[float]) -> float | None:
    """The smallest relative change (0.05: 5 %) between two such sets of n repeats, unpaired, that a two-sided t test at
    5 % would find with a power of 80 %. It describes the spread of one column; what a verdict could have found is
    `harness.compare.judgement.Judgement.detectable`.

    The spread is that of the logarithms; both sets are taken to have it, so that there are 2n - 2 degrees of freedom.
    None for fewer than 2 values or where one is not above 0 and finite.
    """
    n = len(values)
    if n < 2 or not all(map(_has_log, values)):
        return None
    spread = stdev([math.log(value) for value in values])
    return detectable(Effect(0.0, spread * math.sqrt(2 / n), 2 * n - 2, n, paired=False), 1 - CONFIDENCE, 0.0)


def middle(values: Sequence[float]) -> float:
    """The median; infinite where the middle is."""
    return float(median(values))
