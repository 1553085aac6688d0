"""What is known of a framework, by whose word: the four grades, and what each piece shows."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.report.grades import Evidence as Grade

MEASURED: Grade = "measured here"
REPLAYED: Grade = "replayed from logs"
REPORTED: Grade = "author-reported"
DECLARED: Grade = "declared"
GRADES = (MEASURED, REPLAYED, REPORTED, DECLARED)
"""From the strongest to the weakest; they are never added up."""


@dataclass(frozen=True)
class Lag:
    """How far behind trained records were: the most updates, the bound of the cell (None: not told), and whether
    generation went on beside training."""

    most: float
    bound: float | None
    asynchronous: bool


@dataclass(frozen=True)
class Finding:
    """What one source shows of one axis of a framework.

    Attributes:
        axis: of the framework map.
        values: of which at least one holds: where a ledger shows that generation and training overlap, it does not show
            in which of the three ways.
        holds: False where it shows that they do not hold.
        lag: of `lag_bound`, where it was measured; else None.
        says: in words; source: the run, file or page, with what in it; version: of the framework, where it is known.
        date: of the run, or when the file was read; of a page, its commit.
    """

    axis: str
    values: frozenset[str]
    grade: Grade
    says: str
    source: str
    version: str | None
    date: str
    holds: bool = True
    lag: Lag | None = None


@dataclass(frozen=True)
class Framework:
    """A framework as it is pinned, with all that is known of it.

    Attributes:
        spec: the content of its `adapter.yaml`.
        runs: whether rlaxes drives it; of others only logs are read.
        findings: by whose word, in no order.
        ran: what of it ran here, in words, a line each.
    """

    name: str
    spec: Mapping[str, Any]
    runs: bool
    findings: Sequence[Finding]
    ran: Sequence[str] = ()

    @property
    def title(self) -> str:
        """Its name and pinned version."""
        return f"{self.spec['title']} {self.spec['version']}"

    @property
    def sources(self) -> str:
        """Where it was read; an adapter of somebody else need not say."""
        return ", ".join(map(str, self.spec.get("sources") or ())) or "no source is named"


@dataclass(frozen=True)
class Clock:
    """What counts as old."""

    today: datetime.date
    stale_days: int

    def stale(self, framework: Framework, version: str | None, date: str) -> str | None:
        """Why evidence may not hold: it is of another version than the pin or of none, or too old; else None."""
        pin = str(framework.spec["version"])
        if version is None:
            return f"it tells no version, the pin is {pin}"
        if version != pin:
            return f"it speaks of {version}, the pin is {pin}"
        try:
            age = (self.today - datetime.date.fromisoformat(date[:10])).days
        except ValueError:
            return None
        return f"it is {age} days old, more than {self.stale_days}" if age > self.stale_days else None
