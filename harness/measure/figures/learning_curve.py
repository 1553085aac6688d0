"""Reward along the run at equal samples: what a learning check holds against the reference's [12.2.5]."""

from itertools import pairwise

import numpy as np

from harness.measure.columns import Array
from harness.measure.figures.learning import LearningMeasure
from harness.measure.measure import UnmeasuredError, figure
from harness.measure.values import Value
from harness.measure.view import CellView

PARTS = 5
"""Equal parts of the samples that the task trains on, warm-up included."""
LEAST_SHARE = 0.5
"""Share of a part's samples that must have a reward."""


def planned_samples(view: CellView) -> int:
    """Distinct samples that all optimizer steps of the task train on, where none is dropped.

    Raises:
        UnmeasuredError: the task does not say how many.
    """
    task = view.context.task
    if "steps" not in task:
        raise UnmeasuredError("the task has no number of steps")
    batch = task["prompts_per_batch"] * task["group_size"]
    return int(task["steps"] * batch) // int(task["minibatches"] * task["inner_epochs"])


def rewards_in_order(view: CellView) -> Array:
    """The rewards of the samples that were trained on, each once, in the order of the first optimizer step that took
    it; NaN where there is none."""
    trained = view.tables.trained
    known = np.flatnonzero(trained.rollout >= 0)
    ordered = known[np.argsort(trained.step[known], kind="stable")]
    _, first = np.unique(trained.rollout[ordered], return_index=True)
    rewards: Array = view.tables.rollouts.reward[trained.rollout[ordered[np.sort(first)]]]
    return rewards


@figure
class RewardCurve(LearningMeasure):
    """Mean reward of the samples that were trained on, in five equal parts of as many as the task plans, in the order
    of the optimizer steps that took them first, warm-up included. Each part is named by the samples at its end."""

    tag, title, unit, direction = "reward_curve", "Reward at equal samples", "reward", "none"
    source, needs = "12.2.5", ("trained.sample_id", "trained.step", "rollouts.reward_total")
    variants = "samples trained on, at the end of the part"

    def compute(self, view: CellView) -> list[Value]:
        """A part of which too little was trained on has no value."""
        planned, rewards = planned_samples(view), rewards_in_order(view)
        ends = [planned * part // PARTS for part in range(PARTS + 1)]
        return [self._part(rewards, start, end) for start, end in pairwise(ends)]

    def _part(self, rewards: Array, start: int, end: int) -> Value:
        known = rewards[start:end][~np.isnan(rewards[start:end])]
        if len(known) < LEAST_SHARE * (end - start) or not len(known):
            return self.none(f"{len(known)} of {end - start} samples were trained on with a reward", variant=f"{end}")
        return self.ratio(float(known.sum()), float(len(known)), len(known), variant=f"{end}")
