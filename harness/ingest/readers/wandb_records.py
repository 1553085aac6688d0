"""Records of a `.wandb` file: LevelDB's log format under a head of W&B, and of each message the few fields that matter.

Field numbers are those of wandb/proto/wandb_internal.proto, at 0.12 as at 0.31. The `wandb` package itself reads no
such file any more: a Go program of 50 MB in it does.
"""

import struct
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any, BinaryIO

from harness.ingest.lines import LONGEST_LINE
from harness.ingest.told import Told

HEAD = b":W&B"
HEAD_BYTES = 7
BLOCK_BYTES = 32 * 1024
FRAME = struct.Struct("<IHB")
"""Checksum of type and content (zlib's CRC-32), length, type."""
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
MESSAGES = {
    "Record": (("history", 2, "History"), ("summary", 3, "Items"), ("config", 5, "Items"), ("run", 17, "Run")),
    "History": (("update", 1, "Item*"), ("step", 2, "Step")),
    "Items": (("update", 1, "Item*"), ("remove", 2, "Item*")),
    "Item": (("key", 1, "string"), ("nested_key", 2, "string*"), ("value_json", 16, "string")),
    "Step": (("num", 1, "int64"),),
    "Run": (("config", 4, "Items"), ("summary", 5, "Items")),
}
"""Message -> its fields as name, number and type; `*`: several."""


def records(stream: BinaryIO, told: Told) -> Iterator[tuple[int, Any]]:
    """Every whole record and its number from 1. What is damaged is passed over up to the next block of the file."""
    from google.protobuf.message import DecodeError

    message = _record_type()
    for number, content in enumerate(_contents(stream, told), 1):
        try:
            yield number, message.FromString(content)
        except DecodeError:
            told(number, "a record that is no message of W&B: left out")


def _contents(stream: BinaryIO, told: Told) -> Iterator[bytes]:
    if not stream.read(HEAD_BYTES).startswith(HEAD):
        told(0, "no head of W&B: nothing read")
        return
    parts: list[bytes] | None = None
    size = BLOCK_BYTES - HEAD_BYTES
    while block := stream.read(size):
        for kind, content in _fragments(block, size, told):
            if kind in (FULL, FIRST):
                parts = []
            elif parts is None:
                continue  # the rest of a record whose beginning was lost
            parts.append(content)
            if sum(map(len, parts)) > LONGEST_LINE:
                told(0, f"a record of more than {LONGEST_LINE >> 20} MiB: left out")
                parts = None
            elif kind in (FULL, LAST):
                yield b"".join(parts)
                parts = None
        size = BLOCK_BYTES
    if parts is not None:
        told(0, "the file ends within a record: left out")


def _fragments(block: bytes, size: int, told: Told) -> Iterator[tuple[int, bytes]]:
    """Type and content of each piece of a block, up to the first that is damaged or cut."""
    at = 0
    while at + FRAME.size <= len(block):
        checksum, length, kind = FRAME.unpack_from(block, at)
        content = block[at + FRAME.size : at + FRAME.size + length]
        if not (checksum or length or kind):
            return  # room that was set aside and never written
        if len(content) < length and len(block) < size:
            told(0, "the file ends within a record: left out")
            return
        if kind not in (FULL, FIRST, MIDDLE, LAST) or zlib.crc32(bytes([kind]) + content) != checksum:
            told(0, "a damaged record: the rest of its block left out")
            return
        yield kind, content
        at += FRAME.size + length


@cache
def _record_type() -> Any:
    """The class of a record, made of `MESSAGES` alone; the fields that it leaves out are skipped over by protobuf."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    file = FileDescriptorProto(name="rlaxes_wandb.proto", package="rlaxes", syntax="proto3")
    plain = {"string": FieldDescriptorProto.TYPE_STRING, "int64": FieldDescriptorProto.TYPE_INT64}
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, told in fields:
            kind = told.removesuffix("*")
            made = message.field.add(name=field, number=number, type=plain.get(kind, FieldDescriptorProto.TYPE_MESSAGE))
            made.label = made.LABEL_REPEATED if told.endswith("*") else made.LABEL_OPTIONAL
            if kind not in plain:
                made.type_name = f".rlaxes.{kind}"
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("rlaxes.Record"))
