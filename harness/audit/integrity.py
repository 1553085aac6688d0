"""Is the ledger the one that was written? Hashes, flushes, closing notes, columns."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from harness.audit.violation import Violation
from harness.contract import RESUMED, TABLES, WRITTEN, CellLedger
from harness.contract.seal import broken_places


def sealed_files(ledger: CellLedger) -> Iterator[Violation]:
    """Every file is byte for byte what was sealed."""
    for table in TABLES:
        path = ledger.path(table)
        for place in broken_places(path, ledger.seal["tables"][table]):
            yield Violation("sealed_bytes", table, path.name, place)


def flushes(ledger: CellLedger) -> Iterator[Violation]:
    """Each process's flushes run 0, 1, 2, ... without a gap, in the history or taken back from it, each in one of them;
    and they are as many as its closing note says, or at least as a restart from a checkpoint counted."""
    marks = _marked(ledger)
    for table in WRITTEN:
        origins = {
            name: ledger.table(name, ["process", "flush"]) for name in (table, f"lost_{table}") if name in TABLES
        }
        for process in ledger.processes:
            found = [_flushes_of(origin, process) for origin in origins.values()]
            numbers = set().union(*found)
            closing = ledger.manifest.get(f"closed:{process}", {}).get(table)
            least = max(marks.get((process, table), 0), max(numbers, default=-1) + 1)
            expected = closing["flushes"] if closing else least
            where = f"{ledger.path(table).name}: process {process}"
            if missing := sorted(set(range(expected)) - numbers):
                yield Violation("flush_missing", table, where, f"flushes {missing} of {expected} are not there")
            if twice := sorted(set.intersection(*found)) if len(found) > 1 else []:
                yield Violation("flush_twice", table, where, f"flushes {twice} are both kept and taken back")


def _flushes_of(origin: pa.Table, process: str) -> set[int]:
    return set(pc.unique(origin.filter(pc.equal(origin["process"], process))["flush"]).to_pylist())


def _marked(ledger: CellLedger) -> dict[tuple[str, str], int]:
    """Flushes of a process's table that were on disk when a checkpoint was taken that a later attempt went on from."""
    marks = [note["mark"] for key, note in ledger.manifest.items() if key.startswith(RESUMED) and note["mark"]]
    counts: dict[tuple[str, str], int] = {}
    for mark in marks:
        for table, count in mark["flushes"].items():
            place = mark["process"], table
            counts[place] = max(count, counts.get(place, 0))
    return counts


def rows(ledger: CellLedger) -> Iterator[Violation]:
    """Each process wrote as many rows as its closing note says."""
    for table in WRITTEN:
        names = [name for name in (table, f"lost_{table}") if name in TABLES]
        origin = pa.concat_tables([ledger.table(name, ["process"]) for name in names])
        for process in ledger.processes:
            closing = ledger.manifest.get(f"closed:{process}", {}).get(table)
            found = pc.sum(pc.equal(origin["process"], process)).as_py() or 0
            if closing and found != closing["rows"]:
                where = f"{ledger.path(table).name}: process {process}"
                yield Violation("row_count", table, where, f"{found} rows where {closing['rows']} were written")


def closed(ledger: CellLedger) -> Iterator[Violation]:
    """Every process of the last attempt wrote its closing note, but for those declared dead; another that did not was
    killed, and what it had not flushed is lost."""
    if not ledger.processes:
        yield Violation("closing_note", "manifest", ledger.path("manifest").name, "no process wrote to this ledger")
    for process in ledger.current:
        if f"closed:{process}" not in ledger.manifest:
            detail = f"process {process} has no closing note: it was killed, and is whole up to its last flush"
            yield Violation("closing_note", "manifest", ledger.path("manifest").name, detail)
