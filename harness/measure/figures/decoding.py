"""Is the declared behaviour policy the one that sampled, and does the trainer model it [12.4.3]."""

import numpy as np

from harness.measure.columns import Array
from harness.measure.measure import Measure, figure
from harness.measure.rollouts import KNOBS
from harness.measure.values import Value
from harness.measure.view import CellView


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


def unmodelled_by_knob(view: CellView) -> dict[str, Array]:
    """By decoding knob that the trainer does not model: the rollouts of the run that were sampled with it. Lengths that
    were forced by taking the end of sequence out of the distribution (note `distorted_sampling`) are such a knob."""
    rollouts, modelled = view.tables.rollouts, view.note("trainer_models")
    real = rollouts.is_kind("sampled_distribution")
    forced = {"fixed_length": real} if view.notes.get("distorted_sampling") else {}
    return forced | {knob: real & rollouts.knob(knob) for knob in KNOBS if knob not in modelled}


def unmodelled(view: CellView) -> Array:
    """The rollouts of the run that were sampled with any knob that the trainer does not model."""
    out: Array = np.zeros(len(view.tables.rollouts), dtype=bool)
    for rows in unmodelled_by_knob(view).values():
        out = out | rows
    return out


@figure
class DecodingNotModelled(Measure):
    """Records sampled with a decoding knob (temperature, top-p, top-k, min-p, forced length) that the trainer's
    log-probs do not model: the ratio compares two different families of distributions."""

    tag, title, unit, direction = "decoding_not_modelled", "Decoding not modelled by the trainer", "records", "lower"
    topic, source = "integrity", "12.4.3"
    needs = ("rollouts.decoding", "rollouts.behavior_logprob_kind", "manifest.trainer_models")
    variants = "knob"

    def compute(self, view: CellView) -> list[Value]:
        """All such records, then by knob."""
        count = int(view.rollouts.sum())
        flagged = {knob: rows & view.rollouts for knob, rows in unmodelled_by_knob(view).items()}
        named = [self.value(float(rows.sum()), count, variant=knob) for knob, rows in flagged.items() if rows.any()]
        return [self.value(float((unmodelled(view) & view.rollouts).sum()), count), *named]
