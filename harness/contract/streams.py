"""Reads what processes wrote, up to the last whole flush of each."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from harness.contract.migrations import migrate

SUFFIX = ".arrows"


@dataclass(frozen=True)
class StreamPart:
    """One flush of one stream."""

    file: Path
    table: str
    batch: pa.RecordBatch


def stream_files(directory: Path) -> list[Path]:
    """The stream files of a cell, in the order of their names."""
    return sorted(directory.glob(f"*{SUFFIX}"))


def table_of(file: Path) -> str:
    """The table that a stream file holds; its name is `<process>.<table>.arrows`."""
    return file.name.removesuffix(SUFFIX).rsplit(".", 1)[1]


def read_stream(file: Path) -> Iterator[StreamPart]:
    """The flushes of one stream in order. A torn tail (a killed writer) ends the iteration without an error: what
    was lost shows by the missing closing note, not here."""
    table = table_of(file)
    try:
        reader = pa.ipc.open_stream(file.open("rb"))
    except (pa.ArrowInvalid, OSError):
        return
    version = int((reader.schema.metadata or {}).get(b"rlaxes.schema_version", b"0"))
    with reader:
        while True:
            try:
                batch = reader.read_next_batch()
            except (StopIteration, pa.ArrowInvalid, OSError):
                return
            yield StreamPart(file, table, migrate(table, batch, version))
