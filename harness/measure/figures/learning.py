"""How much of the work teaches anything, and what that costs [12.2.5]."""

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np

from harness.measure.columns import Array
from harness.measure.measure import Measure, UnmeasuredError, figure
from harness.measure.values import Value
from harness.measure.view import CellView


class LearningMeasure(Measure):
    """A figure of what the work teaches."""

    topic = "work done"


@figure
class DegenerateFraction(LearningMeasure):
    """Share of complete, fully judged groups whose total rewards are all equal: their relative advantages are 0."""

    tag, title, unit, direction = "degenerate_fraction", "Degenerate groups", "share", "lower"
    source, needs = "12.2.5", ("rollouts.group_id", "rollouts.group_complete", "rollouts.reward_total")

    def compute(self, view: CellView) -> Value:
        """Over the groups of the window."""
        groups, codes = view.tables.groups, view.group_codes
        judged = int(groups.judged[codes].sum())
        return self.ratio(float(judged - groups.informative[codes].sum()), float(judged), judged)


def informative_updates(view: CellView) -> Array:
    """Which steps of the window were applied, with a finite non-zero gradient, from a batch with at least one
    informative group.

    Raises:
        UnmeasuredError: an applied step has no gradient norm.
    """
    updates, trained, rollouts = view.updates, view.tables.trained, view.tables.rollouts
    applied, norm = updates["applied"] == 1, updates["grad_norm"]
    if np.isnan(norm[applied]).any():
        raise UnmeasuredError("an applied optimizer step has no gradient norm")
    rows = view.trained & (trained.rollout >= 0)
    telling = view.tables.groups.informative[rollouts.group[trained.rollout[rows]]]
    steps = np.unique(trained.step[rows][telling])
    chosen: Array = applied & np.isfinite(norm) & (norm != 0) & np.isin(updates["step"], steps)
    return chosen


@figure
class InformativeUpdates(LearningMeasure):
    """Optimizer steps that were applied, with a finite non-zero gradient, from a batch with at least one group whose
    rewards are not all equal."""

    tag, title, unit, direction = "informative_updates", "Informative updates", "steps", "none"
    source, needs = "12.2.5", ("updates.applied", "updates.grad_norm", "trained.step", "rollouts.reward_total")

    def compute(self, view: CellView) -> Value:
        """Their number in the window."""
        return self.value(float(informative_updates(view).sum()), view.steps)


class Cost(LearningMeasure):
    """Something spent per informative update; infinite where there was none."""

    topic = "cost"
    direction = "lower"
    source = "12.2.5"

    def per_update(self, view: CellView, spent: float, unit: str) -> Value:
        """Spent over informative updates."""
        updates = float(informative_updates(view).sum())
        if updates == 0:
            parts = {"numerator": spent, "denominator": 0.0}
            return self.value(
                math.inf, view.steps, unit=unit, reason="no update of the window was informative", **parts
            )
        return self.ratio(spent, updates, view.steps, unit=unit)


@figure
class CostDeviceSeconds(Cost):
    """Reserved device-seconds of the window, idle ones included, over its informative updates; infinite where there
    is none."""

    tag, title, unit = "cost_device_seconds", "Cost of an informative update", "device-s"
    needs = ("manifest.window", "manifest.device_count", "updates.grad_norm", "rollouts.reward_total")

    def compute(self, view: CellView) -> Value:
        """Time."""
        return self.per_update(view, view.window.seconds * view.device_count, self.unit)


@figure
class CostMoney(Cost):
    """Reserved device-hours of the window times the configured price, over its informative updates; infinite where
    there is none. The price has a date and a source."""

    tag, title, unit = "cost_money", "Cost of an informative update, in money", "currency"
    needs = ("manifest.window", "manifest.device_count", "updates.grad_norm", "rollouts.reward_total", "price")

    def compute(self, view: CellView) -> Value:
        """Money."""
        price = view.context.price
        if not price or price.get("amount") is None:
            return self.none("no price is configured (price=custom price.amount=... with its date and source)")
        hours = view.window.seconds * view.device_count / 3600
        value = self.per_update(view, hours * float(price["amount"]), str(price["currency"]))
        said = f"{price['amount']} {price['currency']} a device-hour on {price['date']} ({price['source']})"
        return replace(value, evidence=f"{self.evidence}: {said}")


@figure
class Reward(LearningMeasure):
    """Mean total reward of the completions of the window that have one."""

    tag, title, unit, direction = "reward", "Reward", "reward", "none"
    source, needs = "12.5.2", ("rollouts.reward_total",)

    def compute(self, view: CellView) -> Value:
        """Verifier errors have no reward and are left out."""
        rewards = view.tables.rollouts.reward[view.rollouts]
        known = rewards[~np.isnan(rewards)]
        return self.ratio(float(known.sum()), float(len(known)), len(known))


class RewardQuarter(LearningMeasure):
    """Mean reward of a quarter of all completions of the run, warm-up included, in the order of the ledger."""

    unit = "reward"
    direction = "none"
    source = "12.5.2"
    needs = ("rollouts.reward_total",)
    first: ClassVar[bool]

    def compute(self, view: CellView) -> Value:
        """Verifier errors have no reward and are left out."""
        rewards = view.tables.rollouts.reward
        quarter = -(-len(rewards) // 4)
        chosen = rewards[:quarter] if self.first else rewards[len(rewards) - quarter :]
        known = chosen[~np.isnan(chosen)]
        return self.ratio(float(known.sum()), float(len(known)), len(known))


@figure
class RewardFirst(RewardQuarter):
    """Mean total reward of the first quarter of the run's completions, in the order in which they were generated."""

    tag, title, first = "reward_first_quarter", "Reward, first quarter", True


@figure
class RewardLast(RewardQuarter):
    """Mean total reward of the last quarter of the run's completions, in the order in which they were generated."""

    tag, title, first = "reward_last_quarter", "Reward, last quarter", False


class UpdateMean(LearningMeasure):
    """The mean over optimizer steps of a figure that the trainer reports for each."""

    direction = "none"
    source = "12.5.2"
    column: str

    def compute(self, view: CellView) -> Value:
        """Steps that report none are left out."""
        values = view.updates[self.column]
        known = values[np.isfinite(values)]
        if not len(known):
            return self.none("no optimizer step of the window reports one")
        return self.value(float(np.mean(known)), len(known))


@figure
class GradientNorm(UpdateMean):
    """Mean over the window's optimizer steps of the gradient's norm before clipping."""

    tag, title, unit, column, needs = "grad_norm", "Gradient norm", "norm", "grad_norm", ("updates.grad_norm",)


@figure
class GradientNormMedian(LearningMeasure):
    """Median over the window's optimizer steps of the gradient's norm before clipping."""

    tag, title, unit, direction = "grad_norm_p50", "Gradient norm, median", "norm", "none"
    source, needs = "12.5.2", ("updates.grad_norm",)

    def compute(self, view: CellView) -> Value:
        """Steps that report none are left out."""
        norms = view.updates["grad_norm"]
        known = norms[np.isfinite(norms)]
        if not len(known):
            return self.none("no optimizer step of the window reports one")
        return self.value(float(np.median(known)), len(known))


@figure
class Loss(UpdateMean):
    """Mean over the window's optimizer steps of the loss; its scale depends on the framework's loss."""

    tag, title, unit, column, needs = "loss", "Loss", "loss", "loss", ("updates.loss",)


@figure
class PaddingFraction(LearningMeasure):
    """Share of the positions that forward and backward computed on which were padding."""

    tag, title, unit, direction = "padding_fraction", "Padding", "share", "lower"
    source, needs = "12.2.5", ("spans.padded_tokens", "spans.input_tokens", "spans.policy_tokens")

    def compute(self, view: CellView) -> Value:
        """Padding over prompt, policy and padding positions."""
        spans = view.spans.of("forward_backward")
        if not len(spans):
            return self.none("no span of forward_backward in the window")
        padded = float(spans.padded_tokens.sum())
        whole = padded + float(spans.input_tokens.sum() + spans.policy_tokens.sum())
        return self.ratio(padded, whole, round(whole))
