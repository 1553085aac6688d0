"""A whole answer: the requirements, what was known, each cell, and what would close what is open."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.choose.answer import DIFFERS, NOT_MET, STATES, UNKNOWN, Answer, answers
from harness.choose.asked import Requirement, Requirements
from harness.choose.evidence import GRADES, Clock, Framework
from harness.choose.openings import AFTERWARDS, Opening
from harness.choose.topics import TOPICS

SIGNED = (
    "decided",
    "because",
    "risks that we accept",
    "what we measure before we begin",
    "looked at again on",
    "signed by",
)
"""The lines of the decision, which are the team's to fill in."""


@dataclass(frozen=True)
class Open:
    """What would show more of a framework, and of which of its answers."""

    framework: str
    opening: Opening
    about: tuple[Answer, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        about = [_place(answer) | {"state": answer.state} for answer in self.about]
        return {"framework": self.framework, **asdict(self.opening), "about": about}


@dataclass(frozen=True)
class Choice:
    """What `rlaxes choose` answers.

    Attributes:
        frameworks: in the order of their names.
        answers: every requirement, each for every framework in that order.
        rlaxes: version, commit, and whether there are uncommitted changes.
        runs: the published runs that were read.
    """

    asked: Requirements
    frameworks: tuple[Framework, ...]
    answers: tuple[Answer, ...]
    clock: Clock
    rlaxes: dict[str, Any]
    runs: tuple[str, ...]

    @property
    def title(self) -> str:
        """The decision's name."""
        return self.asked.decision or "Which framework meets our requirements?"

    def rows(self, need: str) -> list[tuple[Requirement, list[Answer]]]:
        """The requirements of a need, each with its answers in the order of the frameworks."""
        return [
            (one, [answer for answer in self.answers if answer.requirement == one])
            for one in self.asked.asked
            if one.need == need
        ]

    def number(self, answer: Answer) -> int:
        """The footnote of an answer, from 1 in the order of the frameworks."""
        return self.noted.index(answer) + 1

    @property
    def noted(self) -> list[Answer]:
        """All answers, framework by framework: the order of the footnotes."""
        return [answer for framework in self.frameworks for answer in self.of(framework.name)]

    def of(self, name: str) -> list[Answer]:
        """The answers of a framework."""
        return [answer for answer in self.answers if answer.framework == name]

    @property
    def not_asked(self) -> list[str]:
        """Titles of the topics on which nothing is asked."""
        return [topic.title for name, topic in TOPICS.items() if not self.asked.of(name)]

    @property
    def open(self) -> list[Open]:
        """What is unknown or contradicted, and what must be met and rests on no measurement of the pinned version: one
        entry a command, and then one a reason why there is none."""
        found: dict[tuple[str, Opening], list[Answer]] = {}
        for answer in self.noted:
            if answer.opening and _worth(answer):
                found.setdefault((answer.framework, answer.opening), []).append(answer)
        entries = [Open(name, opening, tuple(about)) for (name, opening), about in found.items()]
        return sorted(entries, key=lambda entry: (entry.opening.command is None, entry.framework))

    def as_dict(self) -> dict[str, Any]:
        """For JSON: strict, in the order of the page. The decision's lines are null, since they are the team's."""
        return {
            "title": self.title,
            "date": self.clock.today.isoformat(),
            "stale_after_days": self.clock.stale_days,
            "rlaxes": self.rlaxes,
            "runs": list(self.runs),
            "requirements": [_requirement(one) for one in self.asked.asked],
            "not_asked": self.not_asked,
            "frameworks": [_framework(framework) for framework in self.frameworks],
            "answers": [_answer(answer, self.number(answer)) for answer in self.answers],
            "open": [entry.as_dict() for entry in self.open],
            "afterwards": AFTERWARDS,
            "states": STATES,
            "grades": list(GRADES),
            "decision": dict.fromkeys(SIGNED),
        }


def _worth(answer: Answer) -> bool:
    if answer.requirement.need == "indifferent":
        return False
    return answer.state in {UNKNOWN, DIFFERS} or (answer.requirement.need == "must" and answer.state != NOT_MET)


def choose(
    asked: Requirements, frameworks: Sequence[Framework], clock: Clock, rlaxes: dict[str, Any], runs: Sequence[str]
) -> Choice:
    """Every framework against every requirement."""
    ordered = tuple(sorted(frameworks, key=lambda framework: framework.name))
    return Choice(asked, ordered, tuple(answers(ordered, asked, clock)), clock, rlaxes, tuple(runs))


def _requirement(one: Requirement) -> dict[str, Any]:
    return {"topic": one.topic, "asked": one.asked, "need": one.need, "words": list(one.words), "lag": one.lag}


def _framework(framework: Framework) -> dict[str, Any]:
    spec = framework.spec
    told = {key: spec.get(key) for key in ("title", "version", "commit", "pinned", "sources")}
    return {"name": framework.name, **told, "runs_here": framework.runs, "ran": list(framework.ran)}


def _place(answer: Answer) -> dict[str, Any]:
    one = answer.requirement
    return {"framework": answer.framework, "topic": one.topic, "asked": one.asked, "need": one.need}


def _answer(answer: Answer, number: int) -> dict[str, Any]:
    evidence = [asdict(piece) for piece in answer.evidence]
    told = {"state": answer.state, "grade": answer.grade, "stale": answer.stale, "note": number}
    return _place(answer) | told | {"evidence": evidence}
