"""Probability ratios, effective sample size and clipping; and whether the ratio is one at all [12.4.1 - 12.4.3]."""

import math
from typing import ClassVar

import numpy as np

from harness.measure.columns import Array
from harness.measure.measure import Measure, UnmeasuredError, figure
from harness.measure.rollouts import KNOBS
from harness.measure.values import Direction, Value
from harness.measure.view import CellView
from harness.theory.ess import ess, ess_from_sums, log_sum_exp

RATIO_NEEDS = ("trained.trainer_logprobs", "rollouts.behavior_logprobs")


def ratio_rows(view: CellView) -> Array:
    """The trained rows of the window whose ratio is an importance weight, by position.

    Raises:
        UnmeasuredError: no row has one; with the reason.
    """
    trained, rollouts = view.tables.trained, view.tables.rollouts
    rows = np.flatnonzero(view.trained)
    scored = rows[trained.scored[rows]]
    if not len(scored):
        raise UnmeasuredError("the adapter gives no trainer log-probs")
    declared = scored[~rollouts.misdeclared[trained.rollout[scored]]]
    if not len(declared):
        raise UnmeasuredError("behavior policy misdeclared: the log-probs are not of the distribution sampled from")
    chosen: Array = declared[trained.defined[declared] > 0]
    if not len(chosen):
        raise UnmeasuredError("no trained token has both a trainer and a behaviour log-prob")
    return chosen


def tokens_ess(view: CellView, rows: Array) -> float:
    """ESS over all tokens of some rows."""
    trained = view.tables.trained
    return ess_from_sums(log_sum_exp(trained.log_sum[rows]), log_sum_exp(trained.log_square[rows]))


class RatioMeasure(Measure):
    """A figure of the ratio of trainer to behaviour policy."""

    topic = "lag and ratios"
    source = "12.4.2"
    needs: ClassVar[tuple[str, ...]] = RATIO_NEEDS


@figure
class TokenEss(RatioMeasure):
    """ESS = (sum w)^2 / sum w^2 over all policy tokens consumed in the window, w = pi_theta / mu_v of each token; n of
    them would be ideal."""

    tag, title, unit, direction = "ess_tokens", "ESS, tokens", "tokens", "none"

    def compute(self, view: CellView) -> Value:
        """Pooled: small pilots overestimate it."""
        rows = ratio_rows(view)
        return self.value(tokens_ess(view, rows), int(view.tables.trained.defined[rows].sum()))


@figure
class TokenEssShare(RatioMeasure):
    """Token-level ESS over the number of tokens: 1 where all ratios are equal."""

    tag, title, unit, direction = "ess_tokens_share", "ESS / n, tokens", "share", "higher"

    def compute(self, view: CellView) -> Value:
        """Compares windows of different sizes."""
        rows = ratio_rows(view)
        count = int(view.tables.trained.defined[rows].sum())
        return self.ratio(tokens_ess(view, rows), float(count), count)


@figure
class SequenceEss(RatioMeasure):
    """ESS over the sequences consumed in the window, log w_seq being the sum of log w over a sequence's tokens."""

    tag, title, unit, direction = "ess_sequences", "ESS, sequences", "sequences", "none"

    def compute(self, view: CellView) -> Value:
        """Pooled."""
        log_w = view.tables.trained.log_w[ratio_rows(view)]
        return self.value(ess(log_w), len(log_w))


@figure
class SequenceEssShare(RatioMeasure):
    """Sequence-level ESS over the number of sequences: 1 where all ratios are equal."""

    tag, title, unit, direction = "ess_sequences_share", "ESS / n, sequences", "share", "higher"

    def compute(self, view: CellView) -> Value:
        """Compares windows of different sizes."""
        log_w = view.tables.trained.log_w[ratio_rows(view)]
        return self.ratio(ess(log_w), float(len(log_w)), len(log_w))


@figure
class LowestEssShare(RatioMeasure):
    """The lowest sequence-level ESS / n of any single optimizer step of the window."""

    tag, title, unit, direction = "ess_sequences_share_lowest", "ESS / n of the worst step", "share", "higher"

    def compute(self, view: CellView) -> Value:
        """Step by step."""
        rows = ratio_rows(view)
        shares = ess_share_by_step(view, rows)
        return self.value(min(shares.values()), len(shares))


def ess_share_by_step(view: CellView, rows: Array) -> dict[int, float]:
    """Sequence-level ESS / n of each optimizer step."""
    trained = view.tables.trained
    order = rows[np.argsort(trained.step[rows], kind="stable")]
    steps, begins = np.unique(trained.step[order], return_index=True)
    parts = np.split(trained.log_w[order], begins[1:])
    return {int(step): ess(part) / len(part) for step, part in zip(steps, parts, strict=True)}


@figure
class LogRatioMean(RatioMeasure):
    """Mean |log w| over policy tokens, log w = log pi_theta - log mu_v."""

    tag, title, unit, direction = "log_ratio_mean", "|log w|, mean", "nats", "lower"

    def compute(self, view: CellView) -> Value:
        """Over all tokens whose ratio is defined."""
        rows, trained = ratio_rows(view), view.tables.trained
        count = int(trained.defined[rows].sum())
        return self.ratio(float(trained.absolute[rows].sum(dtype=np.float64)), float(count), count)


@figure
class LogRatioMax(RatioMeasure):
    """Largest |log w| of any policy token."""

    tag, title, unit, direction = "log_ratio_max", "|log w|, largest", "nats", "lower"

    def compute(self, view: CellView) -> Value:
        """Over all tokens whose ratio is defined."""
        rows, trained = ratio_rows(view), view.tables.trained
        return self.value(float(trained.largest[rows].max()), int(trained.defined[rows].sum()))


def clipped_rows(view: CellView, rows: Array) -> Array:
    """Those of `rows` whose step had a clip range.

    Raises:
        UnmeasuredError: none had.
    """
    chosen: Array = rows[view.tables.trained.clipped[rows]]
    if not len(chosen):
        raise UnmeasuredError("no optimizer step of the window reports a clip range")
    return chosen


@figure
class ClipFraction(RatioMeasure):
    """Share of policy tokens whose w = pi_theta / mu_v lies outside the clip range of their step."""

    tag, title, unit, direction = "clip_fraction", "Outside the clip range", "share", "lower"
    needs = (*RATIO_NEEDS, "updates.clip_low, updates.clip_high")

    def compute(self, view: CellView) -> Value:
        """Whether or not the loss's own ratio is clipped."""
        rows, trained = clipped_rows(view, ratio_rows(view)), view.tables.trained
        count = int(trained.defined[rows].sum())
        return self.ratio(float(trained.outside[rows].sum()), float(count), count)


@figure
class BindingClipFraction(Measure):
    """Share of policy tokens whose gradient the clip removed: the loss's own ratio, to the old policy that the step
    used, beyond the range on the side of the advantage. It is 0 where the framework keeps no separate old policy,
    whatever the lag."""

    tag, title, unit, direction = "binding_clip_fraction", "Gradient removed by the clip", "share", "lower"
    topic, source = "lag and ratios", "12.4.2"
    needs = ("trained.trainer_logprobs", "trained.old_logprobs", "trained.advantage", "updates.clip_low")

    def compute(self, view: CellView) -> Value:
        """From old log-probs; a row without them has ratio 1 by construction."""
        trained = view.tables.trained
        rows = np.flatnonzero(view.trained & trained.scored)
        if not len(rows):
            return self.none("the adapter gives no trainer log-probs")
        rows = clipped_rows(view, rows)
        count = int(trained.policy_tokens[rows].sum())
        return self.ratio(float(trained.binding[rows].sum()), float(count), count)


@figure
class SupportViolations(Measure):
    """Policy tokens consumed in the window with no finite behaviour log-prob: their ratio is undefined, and they are
    left out of every figure of ratios."""

    tag, title, unit, direction = "support_violations", "Support violations", "tokens", "lower"
    topic, source, needs = "integrity", "12.4.2", ("rollouts.behavior_logprobs", "trained.policy_tokens")

    def compute(self, view: CellView) -> Value:
        """Their number."""
        trained = view.tables.trained
        count = int(trained.policy_tokens[view.trained].sum())
        return self.value(float(trained.no_behavior[view.trained].sum()), count)


@figure
class Misdeclared(Measure):
    """Behavior policy misdeclared: records whose log-probs are of the raw softmax although temperature, top-p, top-k or
    min-p shaped what was sampled. Their ratio is not called an importance weight."""

    tag, title, unit, direction = "behavior_policy_misdeclared", "Behavior policy misdeclared", "records", "lower"
    topic, source = "integrity", "12.4.3"
    needs = ("rollouts.behavior_logprob_kind", "rollouts.decoding")

    def compute(self, view: CellView) -> Value:
        """Their number in the window."""
        flagged = view.tables.rollouts.misdeclared & view.rollouts
        return self.value(float(flagged.sum()), int(view.rollouts.sum()))


@figure
class DecodingNotModelled(Measure):
    """Records sampled with a decoding knob (temperature, top-p, top-k, min-p) that the trainer's log-probs do not
    model: the ratio compares two different families of distributions."""

    tag, title, unit, direction = "decoding_not_modelled", "Decoding not modelled by the trainer", "records", "lower"
    topic, source = "integrity", "12.4.3"
    needs = ("rollouts.decoding", "rollouts.behavior_logprob_kind", "manifest.trainer_models")
    variants = "knob"

    def compute(self, view: CellView) -> list[Value]:
        """All such records, then by knob."""
        rollouts, modelled = view.tables.rollouts, view.note("trainer_models")
        real = view.rollouts & rollouts.is_kind("sampled_distribution")
        flagged = {knob: real & rollouts.knob(knob) for knob in KNOBS if knob not in modelled}
        count = int(view.rollouts.sum())
        either = np.logical_or.reduce([real & False, *flagged.values()])
        named = [self.value(float(rows.sum()), count, variant=knob) for knob, rows in flagged.items() if rows.any()]
        return [self.value(float(either.sum()), count), *named]


def zero_lag_rows(view: CellView) -> Array:
    """The trained rows that tell mismatch: sampled and scored at the same policy version, by two stacks.

    Raises:
        UnmeasuredError: there are none; with the reason.
    """
    rows, trained = ratio_rows(view), view.tables.trained
    fresh = rows[trained.lag[rows] == 0]
    if not len(fresh):
        raise UnmeasuredError("no record of the window was consumed at zero lag; mismatch is never mixed with lag")
    own = fresh[~view.tables.rollouts.is_kind("recomputed")[trained.rollout[fresh]]]
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


def token_count(view: CellView, rows: Array) -> int:
    """Tokens of some trained rows whose ratio is defined."""
    return int(view.tables.trained.defined[rows].sum())


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
        buckets = length_buckets(view.tables.rollouts.response_tokens[trained.rollout[rows]])
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
        return -float(view.tables.trained.log_w[rows].sum()) / token_count(view, rows)


@figure
class MismatchK3(Mismatch):
    """k3 estimate of KL(engine, trainer) at zero lag: mean of w - 1 - log w over sampled tokens; never negative."""

    tag, title = "mismatch_k3", "Mismatch at zero lag, k3"

    def reduce(self, view: CellView, rows: Array) -> float:
        """Sum over count."""
        value = float(view.tables.trained.k3[rows].sum(dtype=np.float64)) / token_count(view, rows)
        return value if math.isfinite(value) else math.inf
