"""Why two systems cannot be held against each other, or why what was found may not be called a difference."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.compare.controls import disturbance
from harness.compare.judgement import JudgedState
from harness.compare.learning import learning_check
from harness.compare.lengths import length_breach
from harness.compare.null_test import NullTest
from harness.compare.results import CellResult, GroupKey
from harness.compare.settings import settings_breach


@dataclass(frozen=True)
class Hindrance:
    """A state that no number of repeats would change, and why; `cause` as in `Judgement.cause`."""

    state: JudgedState
    reason: str
    cause: str | None = None


def hindrance(groups: dict[GroupKey, list[CellResult]], key: GroupKey, baseline: str) -> Hindrance | None:
    """Why there is nothing to judge, the first of: it or its baseline did not run, failed, or did other work.

    A system that failed by itself in one repeat, where its baseline did not, has failed: a verdict over the rest would
    be one over the easy ones. A repeat that the machine or the harness lost is left out and told.

    Args:
        groups: all groups of the track.
        key: the group of the subject.
    """
    ours, theirs = groups[key], groups[baseline, *key[1:]]
    return _absent(ours, theirs, baseline) or _other_work(groups, key, ours, theirs, baseline)


def _absent(ours: Sequence[CellResult], theirs: Sequence[CellResult], baseline: str) -> Hindrance | None:
    fine = {cell.repeat for cell in theirs if cell.status == "ok"}
    own = [c for c in ours if c.status in {"failed", "torn"} and c.cause == "system" and (c.repeat in fine or not fine)]
    if all(cell.status == "not_run" for cell in ours):
        return Hindrance("not run", ours[0].reason or "it was not run")
    if all(cell.status == "not_run" for cell in theirs):
        return Hindrance("not run", f"its baseline {baseline} was not run: {theirs[0].reason or 'no reason given'}")
    if own and fine:
        return Hindrance("failed", _failure(own, len(ours)), "system")
    if not fine:
        lost = [cell for cell in theirs if cell.status != "ok"]
        return Hindrance("failed", f"its baseline {baseline} failed: {_failure(lost, len(theirs))}")
    if not any(cell.status == "ok" for cell in ours):
        lost = [cell for cell in ours if cell.status != "not_run"]
        return Hindrance("failed", _failure(lost, len(ours)), lost[0].cause)
    return None


def _failure(lost: Sequence[CellResult], planned: int) -> str:
    first = lost[0]
    return f"{len(lost)} of {planned} repeats {first.status} ({first.cause or 'no cause known'}): {first.reason}"


def _other_work(
    groups: dict[GroupKey, list[CellResult]],
    key: GroupKey,
    ours: Sequence[CellResult],
    theirs: Sequence[CellResult],
    baseline: str,
) -> Hindrance | None:
    learning = learning_check(groups, key, baseline)
    breaches = [
        settings_breach(ours, theirs, baseline),
        length_breach(groups, key, baseline),
        learning.breach if learning else None,
    ]
    said = "; ".join(breach for breach in breaches if breach)
    return Hindrance("not comparable", said) if said else None


def doubt(cells: Sequence[CellResult], null: NullTest | None, foreign_limit: float) -> str | None:
    """Why no difference and no sameness may be told from what was measured, or None."""
    if null is not None and (null.failed or null.noise is None):
        return f"after this A/A test there is no verdict: {null.failed or 'it has not ended'}"
    return disturbance([cell for cell in cells if cell.status == "ok"], foreign_limit)


def remarks(ours: Sequence[CellResult], theirs: Sequence[CellResult]) -> Iterator[str]:
    """What to know of the repeats that do not count, and of those that do."""
    for cell in [*ours, *theirs]:
        if cell.status != "ok":
            cause = f" ({cell.cause})" if cell.cause else ""
            yield f"without {cell.name}: {cell.status.replace('_', ' ')}{cause}"
    if any(cell.foreign_cores is None for cell in [*ours, *theirs] if cell.status == "ok"):
        yield "what other processes used is not known"
