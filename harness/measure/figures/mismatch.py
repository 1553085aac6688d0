"""Training-inference mismatch: the same tokens at the same version, scored by two stacks [12.4.1, 12.4.3]."""

import math
from typing import ClassVar

import numpy as np

from harness.measure.columns import Array
from harness.measure.figures.decoding import unmodelled
from harness.measure.figures.importance import RATIO_NEEDS, ratio_rows, token_count
from harness.measure.measure import Measure, UnmeasuredError, figure
from harness.measure.values import Direction, Value
from harness.measure.view import CellView


def zero_lag_rows(view: CellView) -> Array:
    """The trained rows that tell mismatch: sampled and scored at the same policy version, by two stacks.

    Raises:
        UnmeasuredError: there are none; with the reason.
    """
    own = fresh_rows(view)
    same: Array = own[~unmodelled(view)[view.tables.trained.rollout[own]]]
    if not len(same):
        raise UnmeasuredError("the trainer does not model the decoding: its distribution is another one by design")
    return same


def fresh_rows(view: CellView) -> Array:
    """The trained rows that were sampled and scored at the same policy version by two stacks, whatever the decoding.

    Raises:
        UnmeasuredError: there are none; with the reason.
    """
    rows, trained = ratio_rows(view), view.tables.trained
    fresh = rows[trained.lag[rows] == 0]
    if not len(fresh):
        raise UnmeasuredError("no record of the window was consumed at zero lag; mismatch is never mixed with lag")
    rollouts = view.tables.rollouts
    own = fresh[~rollouts.is_kind("recomputed")[trained.rollout[fresh]]]
    if not len(own):
        raise UnmeasuredError("the behaviour log-probs were recomputed by the trainer: there is nothing to compare")
    return own


def bucket_label(number: int) -> str:
    """Bucket `number` of completion lengths: 1-8, 9-16, 17-32, and on by doubling."""
    return "1-8" if number == 0 else f"{2 ** (number + 2) + 1}-{2 ** (number + 3)}"


def length_buckets(tokens: Array) -> Array:
    """The bucket of each completion length."""
    number: Array = np.maximum(np.ceil(np.log2(np.maximum(tokens, 1))) - 3, 0).astype(np.int64)
    return number


class Mismatch(Measure):
    """A figure of training-inference mismatch at zero lag, over all completions and by bucket of their length."""

    unit = "nats"
    direction: ClassVar[Direction] = "lower"
    topic = "mismatch"
    source = "12.4.3"
    needs = (*RATIO_NEEDS, "trained.policy_version", "rollouts.policy_version")
    variants = "completion length"

    def compute(self, view: CellView) -> list[Value]:
        """All first, then bucket by bucket."""
        rows, trained = zero_lag_rows(view), view.tables.trained
        buckets = length_buckets(view.tables.rollouts.policy_tokens[trained.rollout[rows]])
        out = [self._of(view, rows, "")]
        for number in np.unique(buckets):
            out.append(self._of(view, rows[buckets == number], bucket_label(int(number))))
        return out

    def _of(self, view: CellView, rows: Array, variant: str) -> Value:
        return self.value(self.reduce(view, rows), token_count(view, rows), variant=variant)

    def reduce(self, view: CellView, rows: Array) -> float:
        """The figure of some rows."""
        raise NotImplementedError


@figure
class MismatchMean(Mismatch):
    """Mean |delta log p| between trainer and engine over the tokens of records consumed at zero lag."""

    tag, title = "mismatch_mean", "Mismatch at zero lag, mean |delta log p|"

    def reduce(self, view: CellView, rows: Array) -> float:
        """Sum over count."""
        return float(view.tables.trained.absolute[rows].sum(dtype=np.float64)) / token_count(view, rows)


@figure
class MismatchMax(Mismatch):
    """Largest |delta log p| between trainer and engine of any token of a record consumed at zero lag."""

    tag, title = "mismatch_max", "Mismatch at zero lag, largest |delta log p|"

    def reduce(self, view: CellView, rows: Array) -> float:
        """The largest."""
        return float(view.tables.trained.largest[rows].max())


@figure
class MismatchK1(Mismatch):
    """k1 estimate of KL(engine, trainer) at zero lag: mean of log mu - log pi over sampled tokens; may be negative."""

    tag, title, direction = "mismatch_k1", "Mismatch at zero lag, k1", "none"

    def reduce(self, view: CellView, rows: Array) -> float:
        """Minus the mean of log w."""
        return 0.0 - float(view.tables.trained.log_w[rows].sum()) / token_count(view, rows)


@figure
class MismatchK3(Mismatch):
    """k3 estimate of KL(engine, trainer) at zero lag: mean of w - 1 - log w over sampled tokens; never negative."""

    tag, title = "mismatch_k3", "Mismatch at zero lag, k3"

    def reduce(self, view: CellView, rows: Array) -> float:
        """Sum over count."""
        value = float(view.tables.trained.k3[rows].sum(dtype=np.float64)) / token_count(view, rows)
        return value if math.isfinite(value) else math.inf


@figure
class MismatchK3OfCompletions(Mismatch):
    """The k3 estimate with each completion weighing the same: mean over completions of the mean over its tokens. Beside
    the token mean it says whether short completions differ more; the two are not to be compared with each other."""

    tag, title = "mismatch_k3_per_completion", "Mismatch at zero lag, k3, mean of completions"

    def reduce(self, view: CellView, rows: Array) -> float:
        """Mean of means."""
        trained = view.tables.trained
        value = float((trained.k3[rows] / trained.defined[rows]).mean(dtype=np.float64))
        return value if math.isfinite(value) else math.inf


@figure
class DecodingLogMass(Measure):
    """Mean of log w at zero lag over the tokens of completions that were sampled with a decoding which the trainer does
    not model: the logarithm of the probability that the decoding left to sample from, with the mismatch of the stacks
    in it. It is a bias of the ratio, neither mismatch nor lag."""

    tag, title, unit, direction = "decoding_log_mass", "Log mass that decoding left", "nats", "none"
    topic, source = "mismatch", "12.4.3"
    needs = (*RATIO_NEEDS, "rollouts.decoding", "manifest.trainer_models")

    def compute(self, view: CellView) -> Value:
        """Sum over count."""
        rows, trained = fresh_rows(view), view.tables.trained
        biased = rows[unmodelled(view)[trained.rollout[rows]]]
        if not len(biased):
            return self.none("the trainer models the decoding of every record at zero lag")
        count = token_count(view, biased)
        return self.value(float(trained.log_w[biased].sum()) / count, count)
