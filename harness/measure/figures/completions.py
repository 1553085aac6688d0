"""Lengths, ends, and errors of completions; and whether every token is accounted for [12.5.2, 12.5.3]."""

from typing import ClassVar

import numpy as np

from harness.contract.schema import FATES, STOP_REASONS
from harness.measure.columns import Array
from harness.measure.figures.losses import generated_by, lost_traces, never_arrived, taken_back
from harness.measure.measure import Measure, UnmeasuredError, figure
from harness.measure.spans import GENERATING
from harness.measure.values import Value
from harness.measure.view import CellView


def completion_lengths(view: CellView) -> Array:
    """Policy tokens of each completion of the window.

    Raises:
        UnmeasuredError: there is none.
    """
    lengths: Array = view.tables.rollouts.policy_tokens[view.rollouts]
    if not len(lengths):
        raise UnmeasuredError("no completion ended in the window")
    return lengths


class CompletionLength(Measure):
    """A figure of completion lengths."""

    unit = "tokens"
    direction = "none"
    topic = "work done"
    source = "12.5.2"
    needs = ("rollouts.policy_mask",)


@figure
class CompletionLengthMean(CompletionLength):
    """Mean policy tokens of a completion, a sampled end of sequence included."""

    tag, title = "completion_length", "Completion length, mean"

    def compute(self, view: CellView) -> Value:
        """Tokens over completions."""
        lengths = completion_lengths(view)
        return self.ratio(float(lengths.sum()), float(len(lengths)), len(lengths))


class CompletionLengthQuantile(CompletionLength):
    """A quantile of completion lengths."""

    share: ClassVar[float]

    def compute(self, view: CellView) -> Value:
        """Interpolated linearly."""
        lengths = completion_lengths(view)
        return self.value(float(np.quantile(lengths, self.share)), len(lengths))


@figure
class CompletionLengthMedian(CompletionLengthQuantile):
    """Median policy tokens of a completion."""

    tag, title, share = "completion_length_p50", "Completion length, median", 0.5


@figure
class CompletionLengthP95(CompletionLengthQuantile):
    """95th percentile of the policy tokens of a completion."""

    tag, title, share = "completion_length_p95", "Completion length, p95", 0.95


@figure
class CompletionLengthMax(CompletionLengthQuantile):
    """Policy tokens of the longest completion; of one turn, never above the task's limit."""

    tag, title, share = "completion_length_max", "Completion length, largest", 1.0


@figure
class StopReasons(Measure):
    """Share of the completions of the window that stopped for each reason."""

    tag, title, unit, direction = "stop_reason_share", "Stop reasons", "share", "none"
    topic = "work done"
    source, needs = "12.5.2", ("rollouts.stop_reason",)
    variants = "stop reason"

    def compute(self, view: CellView) -> list[Value]:
        """One value a reason of the contract."""
        rollouts, count = view.tables.rollouts, int(view.rollouts.sum())
        found = {name: int((rollouts.stopped_by(name) & view.rollouts).sum()) for name in STOP_REASONS}
        return [self.ratio(float(n), float(count), count, variant=name) for name, n in found.items()]


@figure
class TruncatedShare(Measure):
    """Share of the completions of the window that the token limit cut off."""

    tag, title, unit, direction = "truncated_share", "Truncated", "share", "none"
    topic = "work done"
    source, needs = "12.3.2", ("rollouts.stop_reason",)

    def compute(self, view: CellView) -> Value:
        """Stop reason `length` over all."""
        count = int(view.rollouts.sum())
        cut = float((view.tables.rollouts.stopped_by("length") & view.rollouts).sum())
        return self.ratio(cut, float(count), count)


@figure
class InfrastructureErrors(Measure):
    """Share of the completions of the window that have no reward because the verifier or an engine failed: an error,
    not a zero."""

    tag, title, unit, direction = "infrastructure_error_share", "Infrastructure errors", "share", "lower"
    topic = "integrity"
    source, needs = "12.5.2", ("rollouts.status",)

    def compute(self, view: CellView) -> Value:
        """Status `infrastructure_error` over all."""
        count = int(view.rollouts.sum())
        failed = float((view.tables.rollouts.has_status("infrastructure_error") & view.rollouts).sum())
        return self.ratio(failed, float(count), count)


@figure
class Faults(Measure):
    """Faults that were written in the whole run, and of each kind."""

    tag, title, unit, direction = "faults", "Faults", "faults", "lower"
    topic = "integrity"
    source, needs = "12.5.3", ("faults.kind",)
    variants = "kind"

    def compute(self, view: CellView) -> list[Value]:
        """All, then by kind."""
        kinds = view.tables.ledger.table("faults", ["kind"])["kind"].to_pylist()
        by_kind = [self.value(float(kinds.count(kind)), len(kinds), variant=kind) for kind in sorted(set(kinds))]
        return [self.value(float(len(kinds)), len(kinds)), *by_kind]


def fate_tokens(view: CellView, fate: str) -> int:
    """Policy tokens of all samples of the run with that fate."""
    fates = view.tables.fates
    return int(fates.tokens[fates.are(fate)].sum())


def sampled_tokens(view: CellView) -> int:
    """Tokens that all generating spans of the run sampled."""
    return int(view.tables.spans.of(*GENERATING).output_tokens.sum())


@figure
class TokenFates(Measure):
    """What became of every token of the whole run: generated, and of those trained on, dropped, in flight at the
    end."""

    tag, title, unit, direction = "token_fates", "Fates of the tokens", "tokens", "none"
    topic = "integrity"
    source, needs = "12.5.3", ("spans.output_tokens", "fates.policy_tokens")
    variants = "fate"

    def compute(self, view: CellView) -> list[Value]:
        """Generated, then fate by fate."""
        counts = {"generated": sampled_tokens(view), **{fate: fate_tokens(view, fate) for fate in FATES}}
        return [self.value(float(count), count, variant=name) for name, count in counts.items()]


@figure
class ClosureGap(Measure):
    """Generated tokens of the whole run less those trained on, dropped, in flight and declared lost: 0, or the ledger
    does not close."""

    tag, title, unit, direction = "token_closure_gap", "Tokens unaccounted for", "tokens", "none"
    topic = "integrity"
    source, needs = "12.5.3", ("spans.output_tokens", "fates.policy_tokens", "lost_rollouts.policy_mask")

    def compute(self, view: CellView) -> Value:
        """Zero where it closes."""
        generated = sampled_tokens(view)
        ended = sum(fate_tokens(view, fate) for fate in FATES) + taken_back(view) + never_arrived(view)
        return self.value(float(generated - ended), generated)


@figure
class RecountGap(Measure):
    """Tokens that the spans say were sampled for the batches of the window less the policy tokens counted again from
    their rollouts: 0, or a throughput's numerator is not what was produced. A batch that the window cuts counts whole,
    one that is declared lost not at all."""

    tag, title, unit, direction = "token_recount_gap", "Recount of output tokens", "tokens", "none"
    topic = "integrity"
    source, needs = "12.2.5", ("spans.output_tokens", "rollouts.policy_mask")

    def compute(self, view: CellView) -> Value:
        """Batches that were refused have spans but no rollouts, and show here."""
        spans, rollouts = view.spans.of(*GENERATING), view.tables.rollouts
        taken, missing = lost_traces(view)
        traces = {spans.names["trace_id"][code] for code in np.unique(spans.trace_id)} - taken - missing
        theirs = np.array([name in traces for name in rollouts.traces], dtype=bool)
        counted = int(rollouts.policy_tokens[theirs[rollouts.trace]].sum()) if len(rollouts) else 0
        return self.value(float(generated_by(view, traces) - counted), counted)
