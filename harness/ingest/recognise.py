"""Whose log a file is, from its content."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

from harness.ingest.reading import HEAD_BYTES, Reader, Recognised


@dataclass(frozen=True)
class Match:
    """A reader and what it recognised."""

    reader: Reader
    found: Recognised


def recognise(stream: BinaryIO, name: str, readers: Sequence[Reader]) -> Match | None:
    """The first reader whose shape the file has; None for a log of another program, for rubbish, and for nothing.

    Args:
        stream: read up to `HEAD_BYTES` from where it stands; the caller reads on from a fresh one.
    """
    head = stream.read(HEAD_BYTES)
    if not head.strip():
        return None
    for reader in readers:
        if found := reader.recognises(head, name):
            return Match(found.reads or reader, found)
    return None
