"""Which stage a change of the step's wall time comes from."""

from collections.abc import Sequence
from statistics import fmean

from harness.compare.gates import STEP
from harness.compare.judgement import Explanation
from harness.compare.results import CellResult
from harness.measure.spans import WAITING

STAGE, UNATTRIBUTED = "stage_share", "unattributed_share"
"""Shares that carry the seconds of a window as their numerators."""


def explained_by(subject: Sequence[CellResult], baseline: Sequence[CellResult]) -> Explanation | None:
    """The stage whose seconds an optimizer step moved most in the direction of the step, of those measured in both.

    Stages of several processes are summed, so that in an overlapping loop a share may be over 1, or a stage be named
    that others hide. Waiting is no cause. Time in no span counts as the stage `unattributed`. None where nothing moved
    that way.
    """
    ours, theirs = _seconds(subject), _seconds(baseline)
    if STEP not in ours or STEP not in theirs:
        return None
    shift = ours.pop(STEP) - theirs.pop(STEP)
    moved = {stage: ours[stage] - theirs[stage] for stage in ours if stage in theirs}
    same_way = {stage: seconds for stage, seconds in moved.items() if seconds * shift > 0}
    if not same_way:
        return None
    stage = max(same_way, key=lambda name: abs(same_way[name]))
    return Explanation(stage, same_way[stage], same_way[stage] / shift)


def _seconds(cells: Sequence[CellResult]) -> dict[str, float]:
    """Seconds an optimizer step by stage, and of the step itself under its own name: means over repeats."""
    found: dict[str, list[float]] = {}
    for cell in cells:
        whole = cell.find(STEP)
        if whole is None or whole.value is None:
            continue
        found.setdefault(STEP, []).append(whole.value)
        for value in cell.values:
            name = "unattributed" if value.tag == UNATTRIBUTED else value.variant
            counts = value.tag in (STAGE, UNATTRIBUTED) and name not in WAITING and value.numerator is not None
            if counts and value.numerator is not None:
                found.setdefault(name, []).append(value.numerator / whole.n)
    return {name: fmean(values) for name, values in found.items() if len(values) == len(found[STEP])}
