"""Work over time, each kind of work over three clocks [12.2.5]."""

from typing import ClassVar

import numpy as np

from harness.measure.measure import Measure, figure
from harness.measure.spans import GENERATING
from harness.measure.values import Value
from harness.measure.view import CellView

SECONDS_AN_HOUR = 3600.0


class ThroughputMeasure(Measure):
    """A figure of work done, or of work over time."""

    topic = "throughput"


class Work(ThroughputMeasure):
    """A kind of work that is counted in the window, and the stages whose time it is held against.

    Attributes:
        what: the work in words, for the definitions.
        stages: the stages that do it.
        per: seconds of the rate's unit (1, or 3600 for an hourly one).
    """

    what: ClassVar[str]
    stages: ClassVar[tuple[str, ...]]
    per: ClassVar[float] = 1.0
    direction = "higher"
    source = "12.2.5"

    def count(self, view: CellView) -> float:
        """How much was done in the window."""
        raise NotImplementedError

    def seconds(self, view: CellView) -> float:
        """The time that it is divided by."""
        raise NotImplementedError

    def compute(self, view: CellView) -> Value:
        """Work over time."""
        count, seconds = self.count(view), self.seconds(view)
        if seconds == 0:
            return self.none(f"no span of {', '.join(self.stages)} in the window")
        parts = {"numerator": count, "denominator": seconds / self.per}
        return self.value(count / seconds * self.per, round(count), **parts)


class OverWall(Work):
    """Over the wall clock of the window."""

    suffix, wording = "", "over the wall clock"

    def seconds(self, view: CellView) -> float:
        """All of it, idle time included."""
        return view.window.seconds


class PerDevice(OverWall):
    """Over the wall clock, for each reserved device."""

    suffix, wording = "_per_device", "over the wall clock times the reserved devices"

    def seconds(self, view: CellView) -> float:
        """Device-seconds, idle devices included."""
        return view.window.seconds * view.device_count


class InStage(Work):
    """Over the time of the stages that do the work."""

    suffix, wording = "_in_stage", "over the time in which a span of {stages} runs"

    def seconds(self, view: CellView) -> float:
        """The union of their spans."""
        return view.spans.of(*self.stages).union_seconds()


def over_three_clocks(cls: type[Work]) -> type[Work]:
    """Register a kind of work as three figures: over the wall clock, per device, and in its stages."""
    for clock in (OverWall, PerDevice, InStage):
        wording = clock.wording.format(stages=", ".join(cls.stages))
        tag, title = f"{cls.tag}{clock.suffix}", f"{cls.title}{_CLOCK_TITLES[clock.suffix]}"
        needs = (*cls.needs, "spans.t_start, spans.t_end" if clock is InStage else "manifest.window")
        body = {"tag": tag, "title": title, "needs": needs, "__doc__": f"{cls.what}, {wording}, after warm-up."}
        figure(type(f"{cls.__name__}{clock.__name__}", (cls, clock), {**body, "__module__": __name__}))
    return cls


_CLOCK_TITLES = {"": "", "_per_device": ", per device", "_in_stage": ", in its stages"}


@over_three_clocks
class InputTokens(Work):
    """Prompt tokens computed."""

    tag, title, unit, stages = "input_tokens_per_second", "Input tokens/s", "tokens/s", ("prefill", "generate")
    what = "Prompt tokens that were really computed, a shared prompt once"
    needs = ("spans.input_tokens",)

    def count(self, view: CellView) -> float:
        """From the spans of generation."""
        return float(view.spans.of(*GENERATING).input_tokens.sum())


@over_three_clocks
class OutputTokens(Work):
    """Tokens sampled."""

    tag, title, unit, stages = "output_tokens_per_second", "Output tokens/s", "tokens/s", GENERATING
    what = "Tokens that the policy sampled, a sampled end of sequence included and padding not"
    needs = ("spans.output_tokens",)

    def count(self, view: CellView) -> float:
        """From the spans of generation."""
        return float(view.spans.of(*GENERATING).output_tokens.sum())


@over_three_clocks
class CompletedRollouts(Work):
    """Completions."""

    tag, title, unit, stages = "rollouts_per_second", "Rollouts/s", "rollouts/s", GENERATING
    what = "Completions whose generation ended"
    needs = ("rollouts.t_generate_end",)

    def count(self, view: CellView) -> float:
        """Rows of the window."""
        return float(view.rollouts.sum())


@over_three_clocks
class VerifiedOutcomes(Work):
    """Completions with a verdict."""

    tag, title, unit = "verified_outcomes_per_second", "Verified outcomes/s", "outcomes/s"
    stages = ("verifier",)
    what = "Completions that the verifier gave a reward, its errors left out"
    needs = ("rollouts.reward_total",)

    def count(self, view: CellView) -> float:
        """Rows with a reward."""
        return float((view.rollouts & ~np.isnan(view.tables.rollouts.reward)).sum())


@over_three_clocks
class TrainingTokens(Work):
    """Policy tokens trained on."""

    tag, title, unit = "training_tokens_per_second", "Training tokens/s", "tokens/s"
    stages = ("forward_backward",)
    what = "Policy tokens through forward and backward, padding left out, once for each step that consumes them"
    needs = ("trained.policy_tokens",)

    def count(self, view: CellView) -> float:
        """From the trained rows."""
        return float(view.tables.trained.policy_tokens[view.trained].sum())


@over_three_clocks
class OptimizerSteps(Work):
    """Optimizer steps."""

    tag, title, unit = "optimizer_steps_per_hour", "Optimizer steps/h", "steps/h"
    stages = ("batch_assembly", "logprob_recompute", "forward_backward", "optimizer_step")
    per = SECONDS_AN_HOUR
    what = "Optimizer steps that were applied"
    needs = ("updates.applied",)

    def count(self, view: CellView) -> float:
        """Applied ones."""
        return float((view.updates["applied"] == 1).sum())


@over_three_clocks
class CompletedGroups(Work):
    """Complete groups."""

    tag, title, unit, stages = "groups_per_second", "Groups/s", "groups/s", GENERATING
    what = "Complete groups whose every completion has a reward"
    needs = ("rollouts.group_id", "rollouts.group_complete", "rollouts.reward_total")

    def count(self, view: CellView) -> float:
        """Judged groups."""
        return float(view.tables.groups.judged[view.group_codes].sum())


@over_three_clocks
class InformativeGroups(Work):
    """Informative groups."""

    tag, title, unit = "informative_groups_per_second", "Informative groups/s", "groups/s"
    stages = GENERATING
    what = "Groups/s x (1 - degenerate fraction): complete groups whose total rewards are not all equal"
    needs = ("rollouts.group_id", "rollouts.group_complete", "rollouts.reward_total")

    def count(self, view: CellView) -> float:
        """Groups that tell completions apart."""
        return float(view.tables.groups.informative[view.group_codes].sum())


@figure
class DecodeTokens(ThroughputMeasure):
    """Tokens sampled in decode over decode's own time: the rate after the first token."""

    tag, title, unit, direction = "decode_tokens_per_second", "Decode tokens/s", "tokens/s", "higher"
    source, needs = "12.2.5", ("spans.output_tokens", "spans.t_start, spans.t_end")

    def compute(self, view: CellView) -> Value:
        """Decode alone."""
        spans = view.spans.of("decode")
        if not len(spans):
            return self.none(view.absent("decode") or "no span of decode in the window")
        tokens = float(spans.output_tokens.sum())
        return self.ratio(tokens, spans.union_seconds(), round(tokens))


@figure
class GeneratedTokens(ThroughputMeasure):
    """Tokens that the policy sampled in the window."""

    topic = "work done"
    tag, title, unit, direction = "generated_tokens", "Generated tokens", "tokens", "none"
    source, needs = "12.2.5", ("spans.output_tokens",)

    def compute(self, view: CellView) -> Value:
        """From the spans of generation."""
        spans = view.spans.of(*GENERATING)
        return self.value(float(spans.output_tokens.sum()), len(spans))
