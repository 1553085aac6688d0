"""Which stage a change of the step's wall time, or of a part of it, comes from."""

from collections.abc import Sequence
from statistics import fmean

from harness.compare.gates import PART, STEP
from harness.compare.judgement import Explanation, Judgement
from harness.compare.results import CellResult
from harness.measure.spans import PARTS, WAITING

STAGE, UNATTRIBUTED = "stage_share", "unattributed_share"
"""Shares that carry the seconds of a window as their numerators."""


def explained_by(found: Judgement, subject: Sequence[CellResult], baseline: Sequence[CellResult]) -> Explanation | None:
    """The stage whose seconds an optimizer step moved most the way that the judged figure's did.

    Stages of several processes are summed, so that in an overlapping loop a share may be over 1, or a stage be named
    that others hide. Waiting is no cause. Of the whole step, time in no span counts as the stage `unattributed`. None
    for a figure that stages do not add up to, and where none that was measured in both moved that way.
    """
    if found.measure not in {STEP, PART}:
        return None
    ours, theirs = _seconds(subject, found.name), _seconds(baseline, found.name)
    within = PARTS[found.variant] if found.measure == PART else ours.keys() - {found.name}
    shift = ours.get(found.name, 0.0) - theirs.get(found.name, 0.0)
    moved = {stage: ours[stage] - theirs[stage] for stage in within if stage in ours and stage in theirs}
    same_way = {stage: seconds for stage, seconds in moved.items() if seconds * shift > 0}
    if not same_way:
        return None
    stage = max(sorted(same_way), key=lambda name: abs(same_way[name]))
    return Explanation(stage, same_way[stage], same_way[stage] / shift)


def _seconds(cells: Sequence[CellResult], figure: str) -> dict[str, float]:
    """Seconds an optimizer step by stage, and of the figure under its own name: means over the repeats that have it."""
    found: dict[str, list[float]] = {}
    for cell in cells:
        whole = cell.find(figure)
        if whole is None or whole.value is None:
            continue
        found.setdefault(figure, []).append(whole.value)
        for value in cell.values:
            name = "unattributed" if value.tag == UNATTRIBUTED else value.variant
            if value.tag in {STAGE, UNATTRIBUTED} and name not in WAITING and value.numerator is not None:
                found.setdefault(name, []).append(value.numerator / whole.n)
    return {name: fmean(values) for name, values in found.items() if len(values) == len(found[figure])}
