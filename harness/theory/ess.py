"""Effective sample size of importance weights, from their logarithms [12.4.2]."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]


def log_sum_exp(values: Floats) -> float:
    """`log sum exp(values)` in float64 with no overflow; -inf for an empty array."""
    if not len(values):
        return -float("inf")
    top = float(np.max(values))
    if not np.isfinite(top):
        return top
    return top + float(np.log(np.sum(np.exp(values - top))))


def ess(log_weights: Floats) -> float:
    """`(sum w)^2 / sum w^2`, as `exp(2 lse(log w) - lse(2 log w))`: from 1 (one dominates) to n (all equal).

    Raises:
        ValueError: there are no weights, or all of them are 0.
    """
    values = np.asarray(log_weights, dtype=np.float64)
    return ess_from_sums(log_sum_exp(values), log_sum_exp(2 * values))


def ess_from_sums(log_sum: float, log_sum_of_squares: float) -> float:
    """ESS from `lse(log w)` and `lse(2 log w)`, so that parts of a large set can be added up first.

    Raises:
        ValueError: the sum of the weights is 0.
    """
    if log_sum == -float("inf"):
        raise ValueError("the effective sample size of no weight is not defined")
    return float(np.exp(2 * log_sum - log_sum_of_squares))
