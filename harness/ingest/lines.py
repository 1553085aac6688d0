"""Bytes of a log in pieces of whole lines, as a stream: memory grows neither with the file nor with a line of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from harness.ingest.reading import Warn

PIECE_BYTES = 4 * 1024 * 1024
LONGEST_LINE = 16 * 1024 * 1024
"""A line beyond this is cut there: 10 GB of one line are no log."""
ANSI = rb"\x1b\[[0-?]*[ -/]*[@-~]"


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole lines of a file: their bytes, the number of the first, and whether the last one has no end (`torn`)."""

    data: bytes
    first_line: int
    torn: bool


def pieces(stream: BinaryIO, warn: Warn, size: int = PIECE_BYTES) -> Iterator[Piece]:
    """The file in pieces of about `size` bytes that end with a line; within a line of progress bars that is longer than
    that, with a carriage return."""
    rest, number = b"", 1
    while data := stream.read(size):
        data = rest + data
        cut = data.rfind(b"\n") + 1
        if not cut and len(data) >= size:
            cut = data.rfind(b"\r") + 1
        if not cut and len(data) < LONGEST_LINE:
            rest = data
            continue
        if not cut:
            warn(number, f"a line of more than {LONGEST_LINE >> 20} MiB: cut there")
            cut = len(data)
        yield Piece(data[:cut], number, torn=False)
        number += data.count(b"\n", 0, cut)
        rest = data[cut:]
    if rest:
        yield Piece(rest, number, torn=True)
