"""Reads what processes wrote, up to the last whole flush of each."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pyarrow as pa

from harness.contract.attempts import split_name
from harness.contract.migrations import migrate

SUFFIX = ".arrows"


@dataclass(frozen=True)
class StreamPart:
    """One flush of one stream: its number, and the name of the process that wrote it."""

    process: str
    table: str
    number: int
    batch: pa.RecordBatch


def stream_files(directory: Path) -> list[Path]:
    """The stream files of a cell, attempt after attempt, in the order of the processes' names."""
    return sorted(directory.glob(f"*{SUFFIX}"), key=_order)


def table_of(file: Path) -> str:
    """The table that a stream file holds; its name is `<process>.<table>.arrows`."""
    return _names(file)[1]


def _names(file: Path) -> tuple[str, str]:
    process, table = file.name.removesuffix(SUFFIX).rsplit(".", 1)
    return process, table


def _order(file: Path) -> tuple[int, str, str]:
    name, table = _names(file)
    process, attempt = split_name(name)
    return attempt, process, table


def read_stream(file: Path) -> Iterator[StreamPart]:
    """The flushes of one stream in order. A torn tail (a killed writer) ends the iteration without an error: what
    was lost shows by the missing closing note, not here."""
    process, table = _names(file)
    try:
        reader = pa.ipc.open_stream(file.open("rb"))
    except (pa.ArrowInvalid, OSError):
        return
    version = int((reader.schema.metadata or {}).get(b"rlaxes.schema_version", b"0"))
    with reader:
        for number in count():
            try:
                batch = reader.read_next_batch()
            except (StopIteration, pa.ArrowInvalid, OSError):
                return
            yield StreamPart(process, table, number, migrate(table, batch, version))
