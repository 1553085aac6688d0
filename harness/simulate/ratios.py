"""Synthetic importance ratios. No policy is simulated, so none can be computed: they are drawn, and everything that is
made from them says so.

The logarithm of a token's ratio is normal with deviation `s(lag)` and mean `-s^2/2`, so that the mean weight is 1. A
token-level ESS/n at one lag then tends to `exp(-s^2)`, and a sequence-level one of length T to `exp(-T s^2)`.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from harness.simulate.records import Sample
from harness.simulate.settings import Staleness, Synthetic
from harness.theory.ess import ess, log_sum_exp

SAYS = (
    "synthetic: log w of a token is drawn from a normal distribution whose deviation grows with the lag, "
    "{ratio_sd:g} + {ratio_sd_per_lag:g} a version; no policy was evaluated"
)


class Ratios:
    """Draws the log ratios of batches."""

    def __init__(self, asked: Synthetic, staleness: Staleness, rng: np.random.Generator) -> None:
        self._asked, self._staleness, self._rng = asked, staleness, rng

    def tokens(self, sample: Sample, version: int) -> npt.NDArray[np.float64]:
        """[length] log w of each token of a completion that is trained on at `version`."""
        if sample.segments is None:
            deviations = np.full(sample.length, self._asked.deviation(version - sample.version))
        else:
            parts = [(self._asked.deviation(version - own), count) for own, count, _, _ in sample.segments]
            deviations = np.repeat([s for s, _ in parts], [count for _, count in parts])
        drawn: npt.NDArray[np.float64] = deviations * self._rng.standard_normal(sample.length) - deviations**2 / 2
        return drawn

    def since(self, sample: Sample, updates: int) -> npt.NDArray[np.float64]:
        """[length] log ratio of each token to the policy of so many updates before; 0 at none."""
        s = updates * self._asked.ratio_sd_per_lag
        drawn: npt.NDArray[np.float64] = s * self._rng.standard_normal(sample.length) - s * s / 2
        return drawn

    def shares(self, samples: Sequence[Sample], version: int) -> tuple[float, float, float]:
        """ESS/n of a batch's tokens (what it tends to) and of its sequences (drawn), and the share of tokens above the
        correction's cap. Every token of a completion counts with the deviation of the oldest: an upper bound of it."""
        length = np.array([sample.length for sample in samples], dtype=np.float64)
        lags = np.array([version - sample.version for sample in samples], dtype=np.float64)
        s = self._asked.ratio_sd + lags * self._asked.ratio_sd_per_lag
        variance = s * s
        whole = float(length.sum())
        token = math.exp(math.log(whole) - log_sum_exp(np.log(length) + variance))
        logs = np.sqrt(length) * s * self._rng.standard_normal(len(samples)) - length * variance / 2
        return token, ess(logs) / len(samples), self._above_cap(s, length, whole)

    def share(self, token: float, sequence: float) -> float:
        """The one of the two that the policy looks at."""
        return token if self._staleness.level == "token" else sequence

    def _above_cap(self, s: npt.NDArray[np.float64], length: npt.NDArray[np.float64], whole: float) -> float:
        if self._staleness.correction == "none":
            return 0.0
        from scipy.stats import norm

        limit = np.log(self._staleness.cap)
        deviation = np.sqrt(length) * s if self._staleness.level == "sequence" else s
        with np.errstate(divide="ignore", invalid="ignore"):
            above = np.where(deviation > 0, norm.sf((limit + deviation**2 / 2) / deviation), 0.0)
        return float((above * length).sum()) / whole
