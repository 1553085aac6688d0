"""What is done about stale records, and what it costs [12.4.4]."""

from collections.abc import Callable

import numpy as np

from harness.measure.columns import Array
from harness.measure.measure import Measure, UnmeasuredError, figure
from harness.measure.values import Value
from harness.measure.view import CellView


class StalenessMeasure(Measure):
    """A figure of stale records."""

    topic = "lag and ratios"
    source = "12.4.4"


class Stale(StalenessMeasure):
    """Completions that were dropped because they were too old."""

    direction = "lower"
    needs = ("fates.fate", "fates.reason", "fates.policy_tokens")

    def rejected(self, view: CellView) -> Array:
        """The policy tokens of each in the window."""
        fates = view.tables.fates
        tokens: Array = fates.tokens[fates.stale() & view.settled]
        return tokens


@figure
class StaleRecords(Stale):
    """Completions that were rejected as stale in the window."""

    tag, title, unit = "stale_rejected_records", "Rejected as stale", "records"

    def compute(self, view: CellView) -> Value:
        """Their number."""
        return self.value(float(len(self.rejected(view))), int(view.settled.sum()))


@figure
class StaleTokens(Stale):
    """Policy tokens of the completions that were rejected as stale in the window."""

    tag, title, unit = "stale_rejected_tokens", "Tokens rejected as stale", "tokens"

    def compute(self, view: CellView) -> Value:
        """Their tokens."""
        return self.value(float(self.rejected(view).sum()), int(view.settled.sum()))


@figure
class DroppedTokens(StalenessMeasure):
    """Policy tokens of the completions that were generated and then dropped in the window, in all and by reason."""

    tag, title, unit, direction = "dropped_tokens", "Dropped tokens", "tokens", "lower"
    needs = ("fates.fate", "fates.reason", "fates.policy_tokens")
    variants = "reason"

    def compute(self, view: CellView) -> list[Value]:
        """All, then by reason; n counts completions."""
        fates = view.tables.fates
        rows = fates.are("dropped") & view.settled
        found = [self._of(fates.tokens[rows], "")]
        for code in sorted(set(fates.reason[rows].tolist()), key=lambda code: _reason(fates.reasons, code)):
            found.append(self._of(fates.tokens[rows & (fates.reason == code)], _reason(fates.reasons, code)))
        return found

    def _of(self, tokens: Array, variant: str) -> Value:
        return self.value(float(tokens.sum()), len(tokens), variant=variant)


def _reason(reasons: list[str], code: int) -> str:
    return reasons[code] if code >= 0 else "no reason given"


@figure
class DroppedShare(StalenessMeasure):
    """Policy tokens dropped in the window over those dropped or trained on in it: the share of generation that was
    thrown away."""

    tag, title, unit, direction = "dropped_share", "Dropped share of the tokens", "share", "lower"
    needs = ("fates.fate", "fates.policy_tokens")

    def compute(self, view: CellView) -> Value:
        """Of what was settled."""
        fates, inside = view.tables.fates, view.settled
        dropped, trained = (int(fates.tokens[inside & fates.are(name)].sum()) for name in ("dropped", "trained"))
        return self.ratio(float(dropped), float(dropped + trained), int(inside.sum()))


SUMMARIES: dict[str, Callable[[Array], float]] = {
    "mean": lambda lengths: float(lengths.mean()),
    "p50": lambda lengths: float(np.median(lengths)),
}


class Lengths(StalenessMeasure):
    """Summaries of completion lengths."""

    unit = "tokens"
    direction = "none"
    needs = ("fates.fate", "fates.reason", "fates.policy_tokens")
    variants, members = "summary", tuple(SUMMARIES)


def rejected_lengths(view: CellView) -> Array:
    """Policy tokens of each completion that was rejected as stale in the window.

    Raises:
        UnmeasuredError: there is none.
    """
    lengths: Array = view.tables.fates.tokens[view.settled & view.tables.fates.stale()]
    if not len(lengths):
        raise UnmeasuredError("no completion was rejected as stale in the window")
    return lengths


def trained_lengths(view: CellView) -> Array:
    """Policy tokens of each completion that was trained on in the window.

    Raises:
        UnmeasuredError: there is none.
    """
    lengths: Array = view.tables.fates.tokens[view.settled & view.tables.fates.are("trained")]
    if not len(lengths):
        raise UnmeasuredError("no completion was trained on in the window")
    return lengths


@figure
class RejectedLength(Lengths):
    """Length in policy tokens of the completions that were rejected as stale in the window: mean and median."""

    tag, title = "rejected_length", "Length of what was rejected as stale"

    def compute(self, view: CellView) -> list[Value]:
        """Summary by summary."""
        lengths = rejected_lengths(view)
        return [self.value(reduce(lengths), len(lengths), variant=name) for name, reduce in SUMMARIES.items()]


@figure
class TrainedLength(Lengths):
    """Length in policy tokens of the completions that were trained on in the window: mean and median."""

    tag, title = "trained_length", "Length of what was trained on"

    def compute(self, view: CellView) -> list[Value]:
        """Summary by summary."""
        lengths = trained_lengths(view)
        return [self.value(reduce(lengths), len(lengths), variant=name) for name, reduce in SUMMARIES.items()]


@figure
class RejectedLengthRatio(Lengths):
    """Length of what was rejected as stale over that of what was trained on in the window: above 1, rejection favours
    short episodes."""

    tag, title, unit = "rejected_length_ratio", "Length, rejected over trained", "ratio"

    def compute(self, view: CellView) -> list[Value]:
        """Mean over mean, median over median."""
        rejected, trained = rejected_lengths(view), trained_lengths(view)
        return [
            self.ratio(reduce(rejected), reduce(trained), len(rejected), variant=name)
            for name, reduce in SUMMARIES.items()
        ]


@figure
class LearningRateShare(StalenessMeasure):
    """Mean learning rate of the window's optimizer steps over that of the task, where its schedule is constant: below
    1, steps were made smaller because the effective sample size fell."""

    tag, title, unit, direction = "learning_rate_share", "Learning rate, share of the task's", "share", "none"
    needs = ("updates.learning_rate", "task.learning_rate")

    def compute(self, view: CellView) -> Value:
        """Over the steps that tell theirs."""
        task = view.context.task
        if task.get("lr_schedule") != "constant" or not task.get("learning_rate"):
            return self.none("the task's learning rate is not constant, or is not known")
        rates = view.updates["learning_rate"]
        known = rates[np.isfinite(rates)]
        if not len(known):
            return self.none("no optimizer step of the window tells its learning rate")
        return self.ratio(float(known.mean()), float(task["learning_rate"]), len(known))


@figure
class UpdatesPerBatch(StalenessMeasure):
    """Optimizer steps of the window over the generated batches that they consumed: fewer than minibatches x
    inner_epochs where stale batches are given fewer epochs."""

    tag, title, unit, direction = "updates_per_batch", "Optimizer steps a generated batch", "steps", "none"
    needs = ("trained.step", "rollouts.trace_id")

    def compute(self, view: CellView) -> Value:
        """Steps over batches."""
        trained = view.tables.trained
        rows = view.trained & (trained.rollout >= 0)
        batches = len(np.unique(view.tables.rollouts.trace[trained.rollout[rows]]))
        return self.ratio(float(len(np.unique(trained.step[rows]))), float(batches), batches)
