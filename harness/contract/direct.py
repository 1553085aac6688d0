"""A sealed ledger that one process writes at once, without streams: for what was recorded elsewhere."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from harness.contract.compact import TableFile, parquet_path, seal_path
from harness.contract.schema import ORIGIN, SCHEMA_VERSION, TABLES, WRITTEN
from harness.contract.seal import write_json
from harness.contract.streams import StreamPart
from harness.contract.writer import identity


def write_sealed(
    ledger_dir: Path,
    cell_id: str,
    process: str,
    tables: Mapping[str, Iterable[pa.RecordBatch]],
    notes: Mapping[str, Any],
) -> int:
    """Write the ledger of a cell from batches, of which one at a time is in memory. Tables without batches are empty.

    Args:
        process: the name of the process that all rows come from.
        tables: batches of a table's own columns, without those of the origin; each is a flush.
        notes: for the table `manifest`.

    Returns:
        How many rows the tables have, the manifest left out.

    Raises:
        ValueError: a batch does not have the columns of its table.
    """
    ledger_dir.mkdir(parents=True, exist_ok=True)
    sealed: dict[str, Any] = {}
    for table in TABLES:
        if table != "manifest":
            sealed[table] = _write(table, tables.get(table, ()), ledger_dir, cell_id, process)
    counts = {
        name: {"flushes": part["flushes"][process], "rows": part["rows"]}
        for name, part in sealed.items()
        if part["rows"]
    }
    counts["manifest"] = {"flushes": 1, "rows": len(notes) + 2}
    kept = {f"process:{process}": identity(cell_id), **notes, f"closed:{process}": counts}
    rows = [{"key": key, "value": json.dumps(value)} for key, value in kept.items()]
    batch = pa.RecordBatch.from_pylist(rows, schema=WRITTEN["manifest"])
    sealed["manifest"] = _write("manifest", [batch], ledger_dir, cell_id, process)
    write_json(seal_path(ledger_dir, cell_id), {"schema_version": SCHEMA_VERSION, "cell_id": cell_id, "tables": sealed})
    return sum(part["rows"] for name, part in sealed.items() if name != "manifest")


def _write(
    table: str, batches: Iterable[pa.RecordBatch], ledger_dir: Path, cell_id: str, process: str
) -> dict[str, Any]:
    file = TableFile(table, parquet_path(ledger_dir, cell_id, table))
    for part in _flushes(table, batches, process):
        file.add(part)
    return file.close()


def _flushes(table: str, batches: Iterable[pa.RecordBatch], process: str) -> Iterator[StreamPart]:
    """The batches with their origin: who wrote them, in which flush."""
    for number, batch in enumerate(batches):
        if batch.schema != TABLES[table]:
            raise ValueError(f"a batch does not have the columns of table {table}: {batch.schema.names}")
        origin = [pa.repeat(pa.scalar(process, ORIGIN[0].type), len(batch))]
        origin += [pa.repeat(pa.scalar(number, ORIGIN[1].type), len(batch))]
        whole = pa.RecordBatch.from_arrays([*batch.columns, *origin], schema=pa.schema([*batch.schema, *ORIGIN]))
        yield StreamPart(process, table, number, whole)
