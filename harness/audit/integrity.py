"""Is the ledger the one that was written? Hashes, flushes, closing notes, columns."""

from collections.abc import Iterator

import pyarrow.compute as pc

from harness.audit.violation import Violation
from harness.contract import TABLES, CellLedger
from harness.contract.seal import broken_places


def sealed_files(ledger: CellLedger) -> Iterator[Violation]:
    """Every file is byte for byte what was sealed."""
    for table in TABLES:
        path = ledger.path(table)
        for place in broken_places(path, ledger.seal["tables"][table]):
            yield Violation("sealed_bytes", table, path.name, place)


def flushes(ledger: CellLedger) -> Iterator[Violation]:
    """Each process's flushes run 0, 1, 2, ... without a gap, and are as many as its closing note says."""
    for table in TABLES:
        origin = ledger.table(table, ["process", "flush"])
        for process in ledger.processes:
            numbers = pc.unique(origin.filter(pc.equal(origin["process"], process))["flush"]).to_pylist()
            closing = ledger.manifest.get(f"closed:{process}", {}).get(table)
            expected = closing["flushes"] if closing else max(numbers, default=-1) + 1
            missing = sorted(set(range(expected)) - set(numbers))
            if missing:
                where = f"{ledger.path(table).name}: process {process}"
                yield Violation("flush_missing", table, where, f"flushes {missing} of {expected} are not there")


def rows(ledger: CellLedger) -> Iterator[Violation]:
    """Each process wrote as many rows as its closing note says."""
    for table in TABLES:
        origin = ledger.table(table, ["process"])
        for process in ledger.processes:
            closing = ledger.manifest.get(f"closed:{process}", {}).get(table)
            found = pc.sum(pc.equal(origin["process"], process)).as_py() or 0
            if closing and found != closing["rows"]:
                where = f"{ledger.path(table).name}: process {process}"
                yield Violation("row_count", table, where, f"{found} rows where {closing['rows']} were written")


def closed(ledger: CellLedger) -> Iterator[Violation]:
    """Every process wrote its closing note; one that did not was killed, and what it had not flushed is lost."""
    if not ledger.processes:
        yield Violation("closing_note", "manifest", ledger.path("manifest").name, "no process wrote to this ledger")
    for process in ledger.processes:
        if f"closed:{process}" not in ledger.manifest:
            detail = f"process {process} has no closing note: it was killed, and is whole up to its last flush"
            yield Violation("closing_note", "manifest", ledger.path("manifest").name, detail)
