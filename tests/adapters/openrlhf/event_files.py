"""Writes TensorBoard event files by hand, as `torch.utils.tensorboard` does, for tests."""

import struct
from collections.abc import Iterable
from pathlib import Path


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def counted(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def event(step: int, tag: str, value: float | None) -> bytes:
    """One scalar; a value of None is a text summary, which has a tensor and no simple value."""
    said = counted(8, b"\x08\x07") if value is None else varint(2 << 3 | 5) + struct.pack("<f", value)
    summary = counted(1, counted(1, tag.encode()) + said)
    return varint(1 << 3 | 1) + struct.pack("<d", 1e9) + varint(2 << 3) + varint(step) + counted(5, summary)


def record(message: bytes) -> bytes:
    return struct.pack("<Q", len(message)) + b"\0\0\0\0" + message + b"\0\0\0\0"


def file_of(events: Iterable[tuple[int, str, float | None]]) -> bytes:
    version = varint(1 << 3 | 1) + struct.pack("<d", 1e9) + counted(3, b"brain.Event:2")
    return record(version) + b"".join(record(event(*one)) for one in events)


def write_events(folder: Path, events: Iterable[tuple[int, str, float | None]], name: str = "1.host.1.0") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"events.out.tfevents.{name}"
    path.write_bytes(file_of(events))
    return path
