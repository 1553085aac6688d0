"""Reads scalars out of TensorBoard's event files with the standard library alone.

A file is a row of records: length (8 bytes), its checksum (4), an `Event` of that length, its checksum (4). Of the
message three fields matter: step (2), and in summary (5) each value (1) with its tag (1) and simple value (2, 32 bits);
see tensorboard/compat/proto/{event,summary}.proto. Checksums are not verified: no checksum of that kind is at hand.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HEADER, FOOTER = 12, 4
VARINT, EIGHT_BYTES, COUNTED, FOUR_BYTES = 0, 1, 2, 5
SIZES = {EIGHT_BYTES: 8, FOUR_BYTES: 4}
STEP, SUMMARY, VALUE, TAG, SIMPLE_VALUE = 2, 5, 1, 1, 2


class Scalar(NamedTuple):
    """One logged number; `value` has the 32 bits that the file has."""

    step: int
    tag: str
    value: float


def read_scalars(path: Path) -> Iterator[Scalar]:
    """All scalars of one event file in its order, up to the first record that was cut short or is no event."""
    content = path.read_bytes()
    try:
        for record in _records(content):
            yield from _scalars(record)
    except (ValueError, IndexError, struct.error):
        return


def _records(content: bytes) -> Iterator[bytes]:
    """Whole records only: a process that was killed leaves the last one torn."""
    at = 0
    while at + HEADER <= len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        end = at + HEADER + length
        if end + FOOTER > len(content):
            return
        yield content[at + HEADER : end]
        at = end + FOOTER


def _scalars(record: bytes) -> list[Scalar]:
    fields = list(_fields(record))
    step = next((value for number, value in fields if number == STEP and isinstance(value, int)), 0)
    summaries = [value for number, value in fields if number == SUMMARY and isinstance(value, bytes)]
    found = []
    for summary in summaries:
        for number, value in _fields(summary):
            if number == VALUE and isinstance(value, bytes):
                parts = dict(_fields(value))
                tag, number_bytes = parts.get(TAG), parts.get(SIMPLE_VALUE)
                if (
                    isinstance(tag, bytes)
                    and isinstance(number_bytes, bytes)
                    and len(number_bytes) == SIZES[FOUR_BYTES]
                ):
                    found.append(Scalar(step, tag.decode(), struct.unpack("<f", number_bytes)[0]))
    return found


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(field number, whole number or bytes) of each field of a protobuf message."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        if kind == COUNTED:
            size, at = _varint(message, at)
        elif kind in SIZES:
            size = SIZES[kind]
        else:
            raise ValueError(f"no such wire type: {kind}")
        if at + size > len(message):
            raise ValueError("a field that is longer than its message")
        yield number, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
