"""Compaction: the streams of a cell become one Parquet file a table, sealed by hashes."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.contract.schema import SCHEMA_VERSION, TABLES, stored_schema
from harness.contract.seal import seal_file, write_json
from harness.contract.streams import StreamPart, read_stream, stream_files, table_of

ROW_GROUP_ROWS = 16_384


def parquet_path(ledger_dir: Path, cell_id: str, table: str) -> Path:
    """Where a cell's table lies."""
    return ledger_dir / f"{cell_id}.{table}.parquet"


def seal_path(ledger_dir: Path, cell_id: str) -> Path:
    """Where a cell's seal lies; it is written last, so its presence says that the compaction ended."""
    return ledger_dir / f"{cell_id}.seal.json"


def compact(streams_dir: Path, ledger_dir: Path, cell_id: str) -> None:
    """Turn the streams of a finished or killed cell into `<cell_id>.<table>.parquet` files and a seal.

    Every table gets a file, even an empty one. Streams are removed only after the seal is on disk. Memory is bounded
    by one row group a table.

    Raises:
        ValueError: a stream has a schema that this rlaxes cannot read.
    """
    ledger_dir.mkdir(parents=True, exist_ok=True)
    files = stream_files(streams_dir)
    tables = {}
    for table in TABLES:
        parts = (part for file in files if table_of(file) == table for part in read_stream(file))
        tables[table] = _write_table(table, parts, parquet_path(ledger_dir, cell_id, table))
    seal = {"schema_version": SCHEMA_VERSION, "cell_id": cell_id, "tables": tables}
    write_json(seal_path(ledger_dir, cell_id), seal)
    for file in files:
        file.unlink()


def _write_table(table: str, parts: Iterator[StreamPart], path: Path) -> dict[str, Any]:
    partial = path.with_suffix(".partial")
    flushes: dict[str, int] = {}
    pending: list[pa.RecordBatch] = []
    schema = stored_schema(table).with_metadata({"rlaxes.schema_version": str(SCHEMA_VERSION)})
    with pq.ParquetWriter(partial, schema, compression="zstd", write_page_checksum=True) as writer:
        for part in parts:
            process = part.file.name.rsplit(".", 2)[0]
            flushes[process] = flushes.get(process, 0) + 1
            pending.append(part.batch)
            if sum(map(len, pending)) >= ROW_GROUP_ROWS:
                _write_group(writer, pending, schema)
        _write_group(writer, pending, schema)
    os.replace(partial, path)
    return {**seal_file(path), "rows": pq.ParquetFile(path).metadata.num_rows, "flushes": flushes}


def _write_group(writer: pq.ParquetWriter, pending: list[pa.RecordBatch], schema: pa.Schema) -> None:
    if pending:
        writer.write_table(pa.Table.from_batches(pending).replace_schema_metadata(schema.metadata))
        pending.clear()
