"""What the verdict of a drill rests on: two ledgers, the settings of the fault, and what was measured [12.5.3]."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import duckdb

from harness.compare.divergence import Divergence, divergence
from harness.contract import ROLLOUTS_LOST, TABLES, CellLedger
from harness.measure.api import measure_cell
from harness.measure.restarts import Resume, faults_of, resumes_of
from harness.measure.values import Value
from harness.measure.view import CellView

Result = Literal["holds", "broken", "unknown", "does not apply"]
SHOWN = 3
"""How many ids of a list are shown."""


@dataclass(frozen=True)
class Check:
    """One thing that a continuation owes, whether it holds, and the evidence."""

    name: str
    result: Result
    said: str


@dataclass(frozen=True)
class Item:
    """What a restart found of one item of step 12.5.1. Digests are hexadecimal, empty where there is none."""

    attempt: int
    item: str
    state: str
    saved: str
    found: str
    evidence: str


@dataclass(frozen=True)
class Evidence:
    """What a verdict rests on.

    Attributes:
        row: the cell's row of the manifest; `fault`, `checkpoint`: its settings.
        view: the drilled cell; `undisturbed`: the one with the same seed, None where there is none.
        violations: what `rlaxes check` found in it, a line each.
    """

    row: dict[str, Any]
    fault: dict[str, Any]
    checkpoint: dict[str, Any]
    view: CellView
    undisturbed: CellView | None
    violations: Sequence[str]

    @property
    def ledger(self) -> CellLedger:
        """Of the drilled cell."""
        return self.view.tables.ledger

    @property
    def twin(self) -> CellLedger | None:
        """Of the undisturbed cell."""
        return self.undisturbed.tables.ledger if self.undisturbed is not None else None

    @cached_property
    def values(self) -> list[Value]:
        """The figures of the drilled cell."""
        return measure_cell(self.view)

    @cached_property
    def resumes(self) -> list[Resume]:
        """Attempts that went on from an earlier one."""
        return resumes_of(self.ledger)

    @cached_property
    def divergence(self) -> Divergence | None:
        """From the undisturbed cell."""
        return divergence(self.twin, self.ledger) if self.twin is not None else None

    @cached_property
    def lost_batches(self) -> set[str]:
        """Batches (`b<number>`) of generations that never arrived."""
        traces = [row["where"] for row in faults_of(self.ledger, ROLLOUTS_LOST)]
        return {f"b{trace.removeprefix('gen-').split('~')[0].split('.')[0]}" for trace in traces}

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What a query over the drilled cell's tables gives."""
        return rows_of(self.ledger, query)

    def find(self, name: str) -> Value | None:
        """The figure of that tag and variant."""
        return next((value for value in self.values if value.name == name), None)


def rows_of(ledger: CellLedger, query: str) -> list[tuple[Any, ...]]:
    """What a query over a cell's tables gives."""
    with duckdb.connect() as connection:
        for table in TABLES:
            connection.from_parquet(str(ledger.path(table))).create_view(table)
        return connection.execute(query).fetchall()


def some(ids: Sequence[Any]) -> str:
    """The first few of a list, in words."""
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    return ", ".join(str(one) for one in ids[:SHOWN]) + more


def batch_of(identity: str) -> int:
    """The number of the batch in the id of a group or sample, `<prompt>.b<batch>[.g<place>]`."""
    return int(identity.split(".b")[-1].split(".")[0])


def short(digest: str) -> str:
    """The first digits of a digest, without the name of its kind; a dash where there is none."""
    return digest.rpartition(":")[2][:12] or "–"
