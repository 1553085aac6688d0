"""What a rule of the audit is: a named identity or bound that numbers of one source owe each other."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from harness.audit.quantities import Case, Where

Severity = Literal["impossible", "contradiction", "suspect"]
"""`impossible`: no run can have done this. `contradiction`: two numbers of the same source exclude each other.
`suspect`: it can be, but mostly means something else than it says."""


@dataclass(frozen=True, slots=True)
class Breach:
    """What a rule met: where, the numbers that show it, and what it would take for them to be true."""

    where: Where
    evidence: str
    would_be_true_if: str


@dataclass(frozen=True)
class Rule:
    """A rule. It is silent about a case that lacks a number it needs.

    Attributes:
        name: stable; findings and `rlaxes audit --rules` carry it.
        says: the identity or bound, in one sentence.
        source: the step of the module, the paper or the report that it rests on.
    """

    name: str
    severity: Severity
    says: str
    source: str
    breaches: Callable[[Case], Iterator[Breach]]


@dataclass(frozen=True)
class Finding:
    """One breach of one rule, as `rlaxes audit --json` prints it."""

    rule: str
    severity: Severity
    case: str
    where: Where
    evidence: str
    would_be_true_if: str
    source: str

    def as_dict(self) -> dict[str, object]:
        """The keys of the command's JSON."""
        place = {"file": self.where.file, "line": self.where.line, "step": self.where.step, "case": self.case}
        told = {"evidence": self.evidence, "would_be_true_if": self.would_be_true_if, "source": self.source}
        return {"rule": self.rule, "severity": self.severity, **place, **told}


Breaches = Callable[[Case], Iterator[Breach]]


class Register:
    """The rules of a file, in the order in which they stand there."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []

    def rule(self, severity: Severity, says: str, source: str) -> Callable[[Breaches], Breaches]:
        """Enter a function as the rule of its own name."""

        def enter(breaches: Breaches) -> Breaches:
            self.rules.append(Rule(breaches.__name__, severity, says, source, breaches))
            return breaches

        return enter


def findings(case: Case, rules: tuple[Rule, ...]) -> Iterator[Finding]:
    """Everything that the rules find in a case."""
    for rule in rules:
        for breach in rule.breaches(case):
            told = (breach.where, breach.evidence, breach.would_be_true_if)
            yield Finding(rule.name, rule.severity, case.name, *told, rule.source)
