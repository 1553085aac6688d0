"""A ratio of two systems over repeats: its size, interval, p, and the change that it could have found.

All on logarithms, where a ratio is a difference and 2 % more and 2 % less are the same distance from none.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, stdev

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri, ndtr, stdtr, stdtrit

from harness.measure.columns import Array

CONFIDENCE = 0.95
POWER = 0.8
_LARGEST = 700.0
"""A logarithm up to which a double holds the number."""
_NODES = 200
"""Of the rule that averages over what the spread might be estimated as: the power is right to 0.001."""


@dataclass(frozen=True)
class Effect:
    """A difference of mean logarithms.

    Attributes:
        shift: the natural logarithm of the ratio.
        error: its standard error.
        degrees: degrees of freedom of the error.
        pairs: repeats that it rests on: pairs, or those of the smaller side.
        paired: whether each repeat of one was held against the same repeat of the other.
    """

    shift: float
    error: float
    degrees: float
    pairs: int
    paired: bool

    @property
    def ratio(self) -> float:
        """The geometric mean ratio."""
        return _exp(self.shift)

    @property
    def half(self) -> float:
        """Half of the 95 % interval of `shift`."""
        return float(stdtrit(self.degrees, (1 + CONFIDENCE) / 2)) * self.error

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the ratio."""
        return _exp(self.shift - self.half), _exp(self.shift + self.half)

    @property
    def p(self) -> float:
        """Two-sided, that the ratio is 1. Repeats that agree to the last digit have no error: any shift is one."""
        if self.error == 0:
            return 0.0 if self.shift else 1.0
        return float(2 * stdtr(self.degrees, -abs(self.shift) / self.error))


def _exp(shift: float) -> float:
    """Infinite where a double cannot hold it: of two or three pairs that vary by orders of magnitude."""
    return math.exp(shift) if shift < _LARGEST else math.inf


def paired_effect(subject: Sequence[float], baseline: Sequence[float]) -> Effect:
    """The effect of two or more pairs (Student's t on the logarithms of their ratios)."""
    logs = [math.log(a) - math.log(b) for a, b in zip(subject, baseline, strict=True)]
    return Effect(fmean(logs), _spread(logs) / math.sqrt(len(logs)), len(logs) - 1, len(logs), paired=True)


def welch_effect(subject: Sequence[float], baseline: Sequence[float]) -> Effect:
    """The effect of two or more repeats on each side that share nothing (Welch 1947, with Satterthwaite's degrees)."""
    sides = [[math.log(value) for value in values] for values in (subject, baseline)]
    parts = [_spread(logs) ** 2 / len(logs) for logs in sides]
    whole = sum(parts)
    below = sum(part**2 / (len(logs) - 1) for part, logs in zip(parts, sides, strict=True))
    degrees = whole**2 / below if below else float(sum(map(len, sides)) - 2)
    shift = fmean(sides[0]) - fmean(sides[1])
    return Effect(shift, math.sqrt(whole), degrees, min(map(len, sides)), paired=False)


def _spread(logs: Sequence[float]) -> float:
    """The standard deviation; what the last digits of a logarithm leave of equal numbers is none."""
    found = stdev(logs)
    return found if found > 1e-12 else 0.0


def power(shift: float, effect: Effect, level: float, margin: float) -> float:
    """The chance to find a true log ratio of `shift`: that p is below `level` and the estimate past `margin`.

    The standard error is taken to be that of `effect`; over what it is estimated as in a repetition is averaged. With a
    margin of 0 it is the power of the t test, i.e. the noncentral t distribution.

    Args:
        margin: as a logarithm.
    """
    if effect.error == 0:
        return float(abs(shift) > margin)
    estimated = effect.error * _estimates(effect.degrees)
    bound = np.maximum(margin, float(stdtrit(effect.degrees, 1 - level / 2)) * estimated)
    found = ndtr((abs(shift) - bound) / effect.error) + ndtr(-(abs(shift) + bound) / effect.error)
    return float(found.mean())


@lru_cache(maxsize=64)
def _estimates(degrees: float) -> Array:
    """What a spread of 1 is estimated as in one of `_NODES` repetitions that stand for all (chi squared)."""
    shares = (np.arange(_NODES) + 0.5) / _NODES
    found: Array = np.sqrt(chdtri(degrees, shares) / degrees)
    return found


def detectable(effect: Effect, level: float, margin: float) -> float:
    """The smallest relative change (0.05: 5 %) that is found with a power of `POWER`.

    Args:
        margin: as a relative change.
    """
    bound = math.log1p(margin)
    if effect.error == 0:
        return margin
    most = bound + (3 * float(stdtrit(effect.degrees, 1 - level / 2)) + 4) * effect.error
    return _exp(float(brentq(lambda shift: power(shift, effect, level, bound) - POWER, 0.0, most))) - 1


def holm(found: Mapping[str, float], weights: Mapping[str, float]) -> dict[str, float]:
    """p values after Holm's step-down procedure with weights (Holm 1979).

    Where all of those below a level are called a difference, the chance that any of them is none stays within that
    level, however they hang together.

    Args:
        found: p by name.
        weights: by name, above 0; equal weights are the plain procedure.
    """
    order = sorted(found, key=lambda name: found[name] / weights[name])
    left = sum(weights[name] for name in order)
    adjusted: dict[str, float] = {}
    worst = 0.0
    for name in order:
        worst = max(worst, min(1.0, left * found[name] / weights[name]))
        adjusted[name] = worst
        left -= weights[name]
    return adjusted
