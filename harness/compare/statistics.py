"""What a few repeats can say: median, interval, ratio, smallest detectable change. Nothing here is random."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, median, stdev

from scipy.optimize import brentq
from scipy.stats import binom, nct, t

CONFIDENCE = 0.95
POWER = 0.8

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


def _log(value: float | None) -> float | None:
    return math.log(value) if value is not None and 0 < value < math.inf else None


def paired_ratio(values: Sequence[float | None], reference: Sequence[float | None]) -> Ratio | None:
    """The geometric mean of `values[i] / reference[i]`, with Student's t interval of the mean log ratio.

    Repeats are interleaved, so those of the same number saw the same machine. A pair counts where both values are
    above 0 and finite; None where no pair does.
    """
    both = [(_log(a), _log(b)) for a, b in zip(values, reference, strict=False)]
    logs = [a - b for a, b in both if a is not None and b is not None]
    if not logs:
        return None
    middle, n = fmean(logs), len(logs)
    if n < 2:
        return Ratio(math.exp(middle), None, None, n)
    half = float(t.ppf((1 + CONFIDENCE) / 2, n - 1)) * stdev(logs) / math.sqrt(n)
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half), n)


def detectable_change(values: Sequence[float], power: float = POWER, level: float = 1 - CONFIDENCE) -> float | None:
    """The smallest relative change (0.05: 5 %) between two such sets of n repeats that a two-sided t test at `level`
    would find with probability `power`.

    The spread is that of the logarithms; both sets are taken to have it. From the noncentral t distribution
    (Cohen 1988) with 2n - 2 degrees of freedom. None for fewer than 2 values or where one is not above 0 and finite.
    """
    logs = [log for log in map(_log, values) if log is not None]
    n = len(logs)
    if n < 2 or n < len(values):
        return None
    return math.expm1(_detectable_shift(n, power, level) * stdev(logs) * math.sqrt(2 / n))


@cache
def _detectable_shift(n: int, power: float, level: float) -> float:
    """The difference of two means of n, in their standard errors, that the t test finds with that power."""
    degrees = 2 * n - 2
    critical = float(t.ppf(1 - level / 2, degrees))

    def missing_power(shift: float) -> float:  # the other tail adds nothing at such a power
        return float(nct.sf(critical, degrees, shift)) - power

    return float(brentq(missing_power, 0.0, 2 * critical + 2))


def middle(values: Sequence[float]) -> float:
    """The median; infinite where the middle is."""
    return float(median(values))
