"""The A/A test: one thing measured as two, for what this machine shows of a difference where there is none."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from harness.compare.controls import disturbance
from harness.compare.effect import Effect, holm, paired_effect
from harness.compare.gates import FOREIGN_LIMIT, LEAST_PAIRS, LEVEL, STATED_MARGIN, STEP, weights_of
from harness.compare.results import CellResult
from harness.compare.totals import by_repeat, gating_figures


@dataclass(frozen=True)
class NullTest:
    """What an A/A test showed.

    Attributes:
        adapter, layout, track: what was measured twice in turns; the label of a system, not of an arm.
        pairs: how many pairs ended well.
        cells: the ids of its cells.
        max_noise: the noise above which a plan stops.
        noise: the spread from run to run of the wall time of a step, as a share (standard deviation of its logarithm);
            None where fewer than two pairs ended well.
        margin: by name of a gating figure, the relative difference of the two sides: what is no larger is none.
        stopped: why the plan should not go on, or None.
        failed: why no verdict holds on this machine now, or None.
    """

    adapter: str
    layout: str
    track: str
    pairs: int
    cells: list[str]
    max_noise: float
    noise: float | None
    margin: dict[str, float] = field(default_factory=dict)
    stopped: str | None = None
    failed: str | None = None

    @classmethod
    def of(
        cls,
        first: Sequence[CellResult],
        second: Sequence[CellResult],
        *,
        adapter: str,
        max_noise: float,
        cells: Sequence[str] = (),
        foreign_limit: float = FOREIGN_LIMIT,
    ) -> Self:
        """Judge the two sides of an A/A test.

        Args:
            first, second: the repeats of both arms, paired by their number; whatever became of them.
            adapter: the system that both arms are of.
            cells: their ids.
        """
        effects = _effects(first, second)
        whole = effects.get(STEP)
        noise = whole.error * math.sqrt(whole.pairs / 2) if whole else None
        margin = {name: math.expm1(abs(effect.shift)) for name, effect in effects.items()}
        disturbed = disturbance([*first, *second], foreign_limit)
        pairs = whole.pairs if whole else 0
        stopped = _too_noisy(noise, max_noise, pairs)
        failed = stopped or disturbed or _differs(effects)
        return cls(
            adapter, first[0].layout, first[0].track, pairs, list(cells), max_noise, noise, margin, stopped, failed
        )

    def margin_of(self, name: str) -> float:
        """The margin of a figure: the stated one, or what this test showed where that is more."""
        return max(STATED_MARGIN, self.margin.get(name, 0.0))

    def as_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """What a manifest holds under `null_test`; one that was not judged yet holds no `failed`."""
        return cls(**{field.name: content[field.name] for field in fields(cls) if field.name in content})


def _effects(first: Sequence[CellResult], second: Sequence[CellResult]) -> dict[str, Effect]:
    found: dict[str, Effect] = {}
    for name in gating_figures(first, second):
        ours, theirs = by_repeat(first, name), by_repeat(second, name)
        if len(shared := sorted(set(ours) & set(theirs))) >= 2:
            found[name] = paired_effect([theirs[k] for k in shared], [ours[k] for k in shared])
    return found


def _too_noisy(noise: float | None, most: float, pairs: int) -> str | None:
    if noise is None or pairs < LEAST_PAIRS:
        return f"{pairs} pairs of the A/A test ended well, and it takes {LEAST_PAIRS}"
    if noise > most:
        return f"the same thing varies by {noise:.1%} from run to run, more than the {most:.1%} that is allowed"
    return None


def _differs(effects: dict[str, Effect]) -> str | None:
    """The first figure in which the two sides differ by the rule of a verdict."""
    adjusted = holm({name: effect.p for name, effect in effects.items()}, weights_of(effects))
    for name, effect in effects.items():
        if adjusted[name] < LEVEL and abs(effect.shift) > math.log1p(STATED_MARGIN):
            return f"one thing measured as two differs in {name} by {effect.ratio - 1:+.1%}"
    return None
