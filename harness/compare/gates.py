"""The measures that a verdict may rest on, named before anything was measured; all others describe.

Each is one number a run, taken over its whole window: seconds over optimizer steps, or the largest sample of memory. A
quantile of steps is none (steps of a run are not independent), and no rate is: with the work of a step held equal, a
rate is the reciprocal of a time that is here. Of each it is known in advance which way is worse.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from harness.measure.values import Value

STEP, PART = "step_seconds", "t_seq_part_seconds"
STATED_MARGIN = 0.02
"""A smaller change is none, however sure: at the size of a repeat of the same thing on another day."""
LEAST_PAIRS = 3
LEAST_UNPAIRED = 4
"""On each side, where repeats are not paired: with 3 the interval of Welch's test covers the truth in 93 % at worst."""
LEAST_SHARE = 0.05
"""Of the step's wall time, below which in both a part of it is no gate: if it doubled, the step would tell."""
LEVEL = 0.05
"""The chance that a comparison of a thing with itself says better or worse anywhere, over all of its gates."""
FOREIGN_LIMIT = 0.25
"""Cores that other processes may use while a cell runs before its times count as disturbed."""


@dataclass(frozen=True)
class Gate:
    """A measure, or one family of them, and its share of the level.

    Attributes:
        measure: the tag of the measure's class.
        whole: only the figure without a variant counts; else every variant, which share the weight.
        weight: its share of `LEVEL` (Holm 1979, weighted): the more, the smaller a change of it can be found.
        sought: the relative change that a comparison is to find. One that could not have found it does not say "no
            change". A smaller one that it does find is told all the same.
        why: what a change of it costs.
    """

    measure: str
    whole: bool
    weight: float
    sought: float
    why: str


GATES = (
    Gate(STEP, True, 0.5, 0.05, "the time that a run takes, waiting included"),
    Gate(PART, False, 0.25, 0.1, "which part of the work takes longer, also where others hide it"),
    Gate("memory_peak_bytes", True, 0.125, 0.1, "whether the run still fits the host"),
    Gate("device_memory_peak_bytes", False, 0.125, 0.1, "whether the run still fits the device"),
)


def gate_of(value: Value) -> Gate | None:
    """The gate that a figure is of, or None where it only describes."""
    return next((g for g in GATES if g.measure == value.tag and not (g.whole and value.variant)), None)


def weights_of(names: Iterable[str]) -> dict[str, float]:
    """The weights of gating figures by name; the members of a family share theirs."""
    tags = {name: name.partition("[")[0] for name in names}
    weight = {gate.measure: gate.weight for gate in GATES}
    return {name: weight[tag] / list(tags.values()).count(tag) for name, tag in tags.items()}
