"""Bytes of a log into pieces and clean lines, as a stream: memory grows neither with the file nor with a line of it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from harness.ingest.reading import Warn

PIECE_BYTES = 4 * 1024 * 1024
LONGEST_LINE = 16 * 1024 * 1024
"""A line beyond this is cut there: 10 GB of one line are no log."""
ANSI = rb"\x1b\[[0-?]*[ -/]*[@-~]"
_CONTROL = re.compile(ANSI + rb"|\x1b\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|\x1b[@-Z\\^_]")
_PREFIX = re.compile(
    r"(?:\((?P<ray>[\w.:-]+(?: ?\([^)]*\))? pid=\d+(?:, ip=[^)]*)?)\)|\[(?P<rank>(?:default|rank)\d+)\]:) ?"
)
_REPEATED = re.compile(r"\s*\[repeated (\d+)x across cluster\]\s*")


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole lines of a file: their bytes, the number of the first, and whether the last one has no end (`torn`)."""

    data: bytes
    first_line: int
    torn: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One clean line: without colours, prefixes and what a carriage return wrote over.

    Attributes:
        number: of the line of the file, from 1.
        origin: the process that a launcher put before it (`TaskRunner pid=7`, `rank0`); empty where none.
        repeated: how often Ray says that the cluster said the same, 1 where it does not.
        torn: the file ends within it.
    """

    number: int
    text: str
    origin: str = ""
    repeated: int = 1
    torn: bool = False


def pieces(stream: BinaryIO, warn: Warn, size: int = PIECE_BYTES) -> Iterator[Piece]:
    """The file in pieces of about `size` bytes that end with a line."""
    rest, number = b"", 1
    while data := stream.read(size):
        data = rest + data
        cut = data.rfind(b"\n") + 1
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


def clean_lines(stream: BinaryIO, warn: Warn) -> Iterator[Line]:
    """Every line that shows something; a progress bar that rewrites its line gives each of its states as a line."""
    for piece in pieces(stream, warn):
        parts = piece.data.split(b"\n")
        last = len(parts) - 1
        for offset, raw in enumerate(parts):
            if raw:
                yield from _lines_of(raw, piece.first_line + offset, torn=piece.torn and offset == last)


def _lines_of(raw: bytes, number: int, *, torn: bool) -> Iterator[Line]:
    if b"\x1b" in raw:
        raw = _CONTROL.sub(b"", raw)
    states = [state for state in raw.split(b"\r") if state.strip()]
    for place, state in enumerate(states):
        text = state.decode("utf-8", "replace")
        origin, repeated = "", 1
        while found := _PREFIX.match(text):
            origin, text = found["ray"] or found["rank"] or "", text[found.end() :]
        if text.endswith("]") and (told := _REPEATED.search(text)):
            repeated, text = int(told[1]), text[: told.start()]
        if text.strip():
            yield Line(number, text, origin, repeated, torn=torn and place == len(states) - 1)
