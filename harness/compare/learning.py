"""The learning check: is a framework's reward at equal samples what the reference's seeds lead one to expect?

The band of a part of the run is the prediction interval of the mean of m new repeats from n repeats of the reference,
`mean ± t(n - 1) s sqrt(1/n + 1/m)` (Hahn 1969), at a level divided by the number of parts (Bonferroni): a framework
that learns as the reference does leaves any of its bands in at most 5 % of runs. It supposes that the means of a seed
are about normal and that seeds vary as much in both.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any, Literal

from scipy.stats import t

from harness.compare.effect import CONFIDENCE
from harness.compare.lengths import reference_cells
from harness.compare.results import CellResult, GroupKey

CURVE = "reward_curve"
TRACK = "free"
LEAST_REPEATS = 3
NEGLIGIBLE = 0.01
"""A band reaches at least this share of the reference's mean to either side: seeds that agree to the last digit are no
measure of what is a difference."""

Result = Literal["within", "outside", "unknown"]


@dataclass(frozen=True)
class LearningPart:
    """One part of the run, up to `samples` trained on: the mean of the framework's repeats, of the reference's, and the
    band in which the former is expected."""

    samples: int
    value: float
    reference: float
    low: float
    high: float

    @property
    def inside(self) -> bool:
        """Whether the value is in the band."""
        return self.low <= self.value <= self.high


@dataclass(frozen=True)
class LearningCheck:
    """The check of one adapter and layout: `said` is the result in words."""

    adapter: str
    layout: str
    track: str
    result: Result
    said: str
    parts: tuple[LearningPart, ...] = ()

    @property
    def breach(self) -> str | None:
        """Why its figures may not be held against the reference's, or None."""
        return self.said if self.result == "outside" else None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"parts": [asdict(part) for part in self.parts]}


def band(values: Sequence[float], repeats: int, parts: int) -> tuple[float, float]:
    """Where the mean of `repeats` new values is expected, given those of the reference (two or more), if they vary
    alike; one of `parts` that are looked at together."""
    n, middle = len(values), fmean(values)
    level = 1 - (1 - CONFIDENCE) / (2 * parts)
    half = float(t.ppf(level, n - 1)) * stdev(values) * math.sqrt(1 / n + 1 / repeats)
    half = max(half, NEGLIGIBLE * abs(middle))
    return middle - half, middle + half


def learning_check(groups: dict[GroupKey, list[CellResult]], key: GroupKey, reference: str) -> LearningCheck | None:
    """The check of a group of cells; None for the reference itself and on other tracks than `TRACK`.

    It cannot be told where the reference has too few repeats, or has itself not learned in this run.
    """
    adapter, _, track = key
    if adapter == reference or track != TRACK:
        return None
    ours, theirs = _curves(groups[key]), _curves(reference_cells(groups, key, reference))
    if why := _untold(ours, theirs, reference):
        return LearningCheck(*key, "unknown", f"cannot be told: {why}")
    shared = sorted(set(ours) & set(theirs), key=int)
    parts = tuple(_part(int(end), ours[end], theirs[end], len(shared)) for end in shared)
    outside = [part for part in parts if not part.inside]
    if outside:
        return LearningCheck(*key, "outside", _said(outside, len(parts), reference), parts)
    last = parts[-1]
    said = f"within the band of {reference} in all {len(parts)} parts; at {last.samples} samples {_numbers(last)}"
    return LearningCheck(*key, "within", said, parts)


def _curves(cells: Sequence[CellResult]) -> dict[str, list[float]]:
    """By the samples at its end, the values of a part that repeats have."""
    curves: dict[str, list[float]] = {}
    for cell in cells:
        for value in cell.values:
            if value.tag == CURVE and value.value is not None:
                curves.setdefault(value.variant, []).append(value.value)
    return curves


def _untold(ours: dict[str, list[float]], theirs: dict[str, list[float]], reference: str) -> str | None:
    most = max(map(len, theirs.values()), default=0)
    if most < LEAST_REPEATS:
        return f"it takes {LEAST_REPEATS} repeats of {reference} with rewards along the run, and there are {most}"
    if not set(ours) & {end for end, values in theirs.items() if len(values) >= 2}:
        return "it has no reward at the samples at which the reference has one"
    first, last = (theirs[end] for end in (min(theirs, key=int), max(theirs, key=int)))
    if not _learned(first, last):
        return f"{reference} has not learned in this run: its reward goes from {fmean(first):.3g} to {fmean(last):.3g}"
    return None


def _learned(first: Sequence[float], last: Sequence[float]) -> bool:
    """Whether the rise from the first to the last part is more than chance would give in one of 20 runs."""
    rises = [after - before for before, after in zip(first, last, strict=False)]
    if len(rises) < 2:
        return False
    return fmean(rises) > float(t.ppf(CONFIDENCE, len(rises) - 1)) * stdev(rises) / math.sqrt(len(rises))


def _part(samples: int, ours: Sequence[float], theirs: Sequence[float], parts: int) -> LearningPart:
    return LearningPart(samples, fmean(ours), fmean(theirs), *band(theirs, len(ours), parts))


def _said(outside: Sequence[LearningPart], parts: int, reference: str) -> str:
    worst = max(outside, key=lambda part: max(part.low - part.value, part.value - part.high))
    where = f"in {len(outside)} of {parts} parts of the run: at {worst.samples} samples {_numbers(worst)}"
    return f"its reward at equal samples leaves the band of {reference} {where}"


def _numbers(part: LearningPart) -> str:
    return f"{part.value:.3g}, expected {part.low:.3g} to {part.high:.3g}"
