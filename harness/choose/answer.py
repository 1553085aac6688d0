"""Each framework against each requirement: met, not met, differs or unknown, with its evidence; no score."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from harness.choose.asked import Requirement, Requirements
from harness.choose.declared import declared_verdict
from harness.choose.evidence import GRADES, MEASURED, Clock, Finding, Framework
from harness.choose.openings import Opening, opening_of
from harness.choose.topics import TOPICS

MET, NOT_MET, DIFFERS, UNKNOWN = "met", "not met", "differs", "unknown"
STATES = {
    MET: "what is known shows it",
    NOT_MET: "what is known shows that it is not so",
    DIFFERS: "sources contradict each other, e.g. declared and measured: both stand",
    UNKNOWN: "nothing that is known tells",
}


@dataclass(frozen=True)
class Evidence:
    """One piece for one cell: whether it `meets` the requirement, by whose word, and why it may no longer hold."""

    grade: str
    meets: bool
    says: str
    source: str
    version: str | None
    date: str
    stale: str | None


@dataclass(frozen=True)
class Answer:
    """One framework and one requirement.

    Attributes:
        grade: of the strongest evidence that is not stale, or of the strongest; None where there is none.
        evidence: the strongest first, of a grade what is not stale first.
        opening: what would show more; None where the answer rests on a measurement.
    """

    framework: str
    requirement: Requirement
    state: str
    grade: str | None
    evidence: tuple[Evidence, ...]
    opening: Opening | None

    @property
    def stale(self) -> bool:
        """Whether there is evidence, and all of it is stale."""
        return bool(self.evidence) and all(one.stale for one in self.evidence)


def answers(frameworks: Sequence[Framework], asked: Requirements, clock: Clock) -> list[Answer]:
    """Every requirement, in the order in which they stand, for every framework in the order of their names."""
    ordered = sorted(frameworks, key=lambda framework: framework.name)
    return [_answer(framework, one, clock) for one in asked.asked for framework in ordered]


def _answer(framework: Framework, one: Requirement, clock: Clock) -> Answer:
    found = sorted(_evidence(framework, one, clock), key=lambda piece: piece.date, reverse=True)
    found.sort(key=lambda piece: (GRADES.index(piece.grade), piece.stale is not None))
    kept = tuple(_newest(found))
    said = {piece.meets for piece in kept}
    state = UNKNOWN if not said else DIFFERS if len(said) == 2 else MET if said == {True} else NOT_MET
    grade = next((piece.grade for piece in (*(p for p in kept if not p.stale), *kept)), None)
    fresh = any(piece.grade == MEASURED and not piece.stale for piece in kept)
    opening = None if fresh and state != DIFFERS else opening_of(framework, one)
    return Answer(framework.name, one, state, grade, kept, opening)


def _evidence(framework: Framework, one: Requirement, clock: Clock) -> Iterator[Evidence]:
    for finding in framework.findings:
        meets = _meets(finding, one)
        if meets is not None:
            stale = clock.stale(framework, finding.version, finding.date)
            told = (finding.says, finding.source, finding.version, finding.date, stale)
            yield Evidence(finding.grade, meets, *told)
    declared = declared_verdict(framework, one)
    if declared is not None:
        stale = clock.stale(framework, declared.version, declared.date) or declared.older_than_pin
        told = (declared.says, declared.source, declared.version, declared.date, stale)
        yield Evidence(declared.grade, declared.meets, *told)


def _meets(finding: Finding, one: Requirement) -> bool | None:
    """What a finding says of a requirement; None where it says nothing of it."""
    if finding.axis != TOPICS[one.topic].axis:
        return None
    if one.lag is not None:
        return _within(finding, one.lag)
    if finding.holds:
        return True if finding.values <= one.values else None
    return False if finding.values >= one.values else None


def _within(finding: Finding, allowed: int) -> bool | None:
    """No lag is shown by a synchronous layout, a lag within a bound by an asynchronous one alone. A record that was too
    far behind speaks against it only where the cell's own bound was no wider than what is allowed."""
    lag = finding.lag
    if lag is None or lag.asynchronous is not (allowed > 0):
        return None
    if lag.most <= allowed:
        return True
    return False if lag.bound is not None and lag.bound <= allowed else None


def _newest(found: Sequence[Evidence]) -> Iterator[Evidence]:
    """Of what one grade says either way, the first: the newest that is not stale. Others are older runs of the same."""
    for _, pieces in groupby(found, key=lambda piece: piece.grade):
        listed = list(pieces)
        for meets in (True, False):
            yield from [piece for piece in listed if piece.meets is meets][:1]
