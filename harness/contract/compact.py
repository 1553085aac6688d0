"""Compaction: the streams of a cell become one Parquet file a table, sealed by hashes."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.contract.attempts import RESUMED, History
from harness.contract.schema import ROLLED_BACK, SCHEMA_VERSION, WRITTEN, stored_schema
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

    Every table gets a file, even an empty one. Rows of the history that a later attempt took back (it went on from an
    older checkpoint, or from none) go to `lost_<table>`, all others to `<table>`: none twice, none nowhere. Streams are
    removed only after the seal is on disk. Memory is bounded by one row group a table.

    Raises:
        ValueError: a stream has a schema that this rlaxes cannot read.
    """
    ledger_dir.mkdir(parents=True, exist_ok=True)
    files = stream_files(streams_dir)
    history = History(_resumed_notes(files))
    tables: dict[str, Any] = {}
    for table in WRITTEN:
        parts = (part for file in files if table_of(file) == table for part in read_stream(file))
        tables |= _write_table(table, parts, history, ledger_dir, cell_id)
    seal = {"schema_version": SCHEMA_VERSION, "cell_id": cell_id, "tables": tables}
    write_json(seal_path(ledger_dir, cell_id), seal)
    for file in files:
        file.unlink()


def _resumed_notes(files: Iterable[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    for file in files:
        if table_of(file) != "manifest":
            continue
        for part in read_stream(file):
            notes = part.batch.to_pydict()
            for key, value in zip(notes["key"], notes["value"], strict=True):
                if key.startswith(RESUMED):
                    yield part.process, json.loads(value)


def _write_table(
    table: str, parts: Iterator[StreamPart], history: History, ledger_dir: Path, cell_id: str
) -> dict[str, Any]:
    """Write a table, and beside it what of it was taken back; what the seal says of both."""
    kept = TableFile(table, parquet_path(ledger_dir, cell_id, table))
    if table not in ROLLED_BACK:
        for part in parts:
            kept.add(part)
        return {table: kept.close()}
    lost = TableFile(table, parquet_path(ledger_dir, cell_id, f"lost_{table}"))
    for part in parts:
        (kept if history.keeps(part.process, table, part.number) else lost).add(part)
    return {table: kept.close(), f"lost_{table}": lost.close()}


class TableFile:
    """A Parquet file that is written group by group, and seen only once it is whole."""

    def __init__(self, table: str, path: Path) -> None:
        self._path, self._partial = path, path.with_suffix(".partial")
        self._schema = stored_schema(table).with_metadata({"rlaxes.schema_version": str(SCHEMA_VERSION)})
        self._writer = pq.ParquetWriter(self._partial, self._schema, compression="zstd", write_page_checksum=True)
        self._pending: list[pa.RecordBatch] = []
        self._flushes: Counter[str] = Counter()

    def add(self, part: StreamPart) -> None:
        """Take a flush in."""
        self._flushes[part.process] += 1
        self._pending.append(part.batch)
        if sum(map(len, self._pending)) >= ROW_GROUP_ROWS:
            self._write_group()

    def close(self) -> dict[str, Any]:
        """End the file; its seal, rows and flushes by process."""
        self._write_group()
        self._writer.close()
        os.replace(self._partial, self._path)
        rows = pq.ParquetFile(self._path).metadata.num_rows
        return {**seal_file(self._path), "rows": rows, "flushes": dict(self._flushes)}

    def _write_group(self) -> None:
        if self._pending:
            table = pa.Table.from_batches(self._pending)
            self._writer.write_table(table.replace_schema_metadata(self._schema.metadata))
            self._pending.clear()
