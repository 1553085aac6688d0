"""Probability ratios, effective sample size and clipping [12.4.2]."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from harness.measure.columns import Array, by_run, log_sums
from harness.measure.figures.decoding import unmodelled
from harness.measure.measure import Measure, UnmeasuredError, figure
from harness.measure.values import Value
from harness.measure.view import CellView

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


def token_count(view: CellView, rows: Array) -> int:
    """Tokens of some trained rows whose ratio is defined."""
    return int(view.tables.trained.defined[rows].sum())


class RatioMeasure(Measure):
    """A figure of the ratio of trainer to behaviour policy."""

    topic = "lag and ratios"
    source = "12.4.2"
    needs: ClassVar[tuple[str, ...]] = RATIO_NEEDS


@dataclass(frozen=True)
class StepEss:
    """One element an optimizer step of the window that has weights: its number, its ESS, and how many weights."""

    step: Array
    ess: Array
    n: Array


class Ess(RatioMeasure):
    """ESS of each optimizer step over the records that it consumes."""

    def by_step(self, view: CellView) -> StepEss:
        """`exp(2 lse(log w) - lse(2 log w))` over each step's weights."""
        rows = ratio_rows(view)
        order = rows[np.argsort(view.tables.trained.step[rows], kind="stable")]
        steps, records = np.unique(view.tables.trained.step[order], return_counts=True)
        log_sum, log_square, weights = self.of_rows(view, order)
        size = np.exp(2 * log_sums(log_sum, records) - log_sums(log_square, records))
        return StepEss(steps, size, by_run(np.add, weights, records, 0))

    def of_rows(self, view: CellView, rows: Array) -> tuple[Array, Array, Array]:
        """`lse(log w)`, `lse(2 log w)` and the number of the weights of each row."""
        raise NotImplementedError


class EssOfTokens(Ess):
    """One weight a token."""

    def of_rows(self, view: CellView, rows: Array) -> tuple[Array, Array, Array]:
        """The row's sums over its tokens."""
        trained = view.tables.trained
        return trained.log_sum[rows], trained.log_square[rows], trained.defined[rows]


class EssOfSequences(Ess):
    """One weight a sequence, the product of its tokens'."""

    def of_rows(self, view: CellView, rows: Array) -> tuple[Array, Array, Array]:
        """The row's log w, summed over its tokens, stands for its one weight.

        Raises:
            UnmeasuredError: the trainer does not model the decoding; a bias of each token is then multiplied up.
        """
        trained = view.tables.trained
        shaped = view.tables.rollouts.knobs.any() or view.notes.get("distorted_sampling")
        if shaped and unmodelled(view)[trained.rollout[rows]].any():
            why = "the trainer does not model the decoding: what it left out biases every token of a sequence's weight"
            raise UnmeasuredError(f"{why} (see decoding_log_mass)")
        log_w = trained.log_w[rows]
        return log_w, 2 * log_w, np.ones(len(rows), np.int64)


def median_ess(measure: Ess, view: CellView) -> Value:
    """The median over steps; it rests on all their weights."""
    steps = measure.by_step(view)
    return measure.value(float(np.median(steps.ess)), int(steps.n.sum()))


def median_share(measure: Ess, view: CellView) -> Value:
    """The median over steps of ESS / n."""
    steps = measure.by_step(view)
    return measure.value(float(np.median(steps.ess / steps.n)), int(steps.n.sum()))


@figure
class TokenEss(EssOfTokens):
    """ESS = (sum w)^2 / sum w^2 over the policy tokens that an optimizer step consumes, w = pi_theta / mu_v of each
    token; median over the steps of the window."""

    tag, title, unit, direction = "ess_tokens", "ESS, tokens", "tokens", "none"

    def compute(self, view: CellView) -> Value:
        """Median."""
        return median_ess(self, view)


@figure
class TokenEssShare(EssOfTokens):
    """Token-level ESS of an optimizer step over the number of its tokens; median over the steps of the window. It is 1
    where all ratios are equal."""

    tag, title, unit, direction = "ess_tokens_share", "ESS / n, tokens", "share", "higher"

    def compute(self, view: CellView) -> Value:
        """Median."""
        return median_share(self, view)


@figure
class SequenceEss(EssOfSequences):
    """ESS over the sequences that an optimizer step consumes, log w_seq being the sum of log w over a sequence's
    tokens; median over the steps of the window."""

    tag, title, unit, direction = "ess_sequences", "ESS, sequences", "sequences", "none"

    def compute(self, view: CellView) -> Value:
        """Median."""
        return median_ess(self, view)


@figure
class SequenceEssShare(EssOfSequences):
    """Sequence-level ESS of an optimizer step over the number of its sequences; median over the steps of the window. It
    is 1 where all ratios are equal."""

    tag, title, unit, direction = "ess_sequences_share", "ESS / n, sequences", "share", "higher"

    def compute(self, view: CellView) -> Value:
        """Median."""
        return median_share(self, view)


@figure
class LowestEssShare(EssOfSequences):
    """The lowest sequence-level ESS / n of any single optimizer step of the window."""

    tag, title, unit, direction = "ess_sequences_share_lowest", "ESS / n of the worst step", "share", "higher"

    def compute(self, view: CellView) -> Value:
        """Step by step."""
        steps = self.by_step(view)
        return self.value(float((steps.ess / steps.n).min()), len(steps.step))


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


@figure
class SequenceRatio(RatioMeasure):
    """Median over the consumed completions of the ratio of a whole completion: `product`, exp of the sum of its tokens'
    log w, which is its importance weight, and `geometric_mean`, exp of their mean. Frameworks print either as "ratio";
    one is never compared with the other."""

    tag, title, unit, direction = "sequence_ratio", "Ratio of a completion", "ratio", "none"
    variants, members = "how", ("product", "geometric_mean")

    def compute(self, view: CellView) -> list[Value]:
        """Both, from logarithms; a product may be infinite."""
        rows, trained = ratio_rows(view), view.tables.trained
        sums = {"product": trained.log_w[rows], "geometric_mean": trained.log_w[rows] / trained.defined[rows]}
        with np.errstate(over="ignore"):
            return [self.value(float(np.exp(np.median(v))), len(rows), variant=k) for k, v in sums.items()]


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
    used, beyond the range on the side of the advantage. A row with no separate old policy has ratio 1 by construction,
    whatever its lag."""

    tag, title, unit, direction = "binding_clip_fraction", "Gradient removed by the clip", "share", "lower"
    topic, source = "lag and ratios", "12.4.2"
    needs = ("trained.trainer_logprobs", "trained.old_logprobs", "trained.advantage", "updates.clip_low")

    def compute(self, view: CellView) -> Value:
        """From old log-probs; a row without them has ratio 1 by construction."""
        trained = view.tables.trained
        rows = np.flatnonzero(view.trained & trained.scored)
        if not len(rows):
            return self.none("the adapter gives no trainer log-probs")
        if not trained.has_old[rows].any():
            return self.none("no separate old policy: the loss's own ratio is 1 by construction")
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
