"""TensorBoard's event files, whoever wrote them: scalars by tag, as `simple_value` or as a tensor of one number.

A `simple_value` has 32 bits: where 0.0003 was logged, the file has 0.0003000000142. Framing, checksums and messages are
the library's; no TensorFlow is needed. It wants a path, so a stream is laid into a temporary file first. The file of a
killed process is read up to the record that was cut.
"""

import math
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from harness.ingest.flat import kind_of
from harness.ingest.keymap import framework_of
from harness.ingest.reading import UNKNOWN, Block, Recognised, Warn
from harness.ingest.told import Told

FIRST_EVENT = b"brain.Event:"
FIRST_BYTES = 256
"""An event file begins with an event that says the version of the format; no other file does."""
FRAME_BYTES = 16
"""Length, its checksum, and the checksum of the event."""
MOST_TAGS = 10_000
WALL_TIME = "wall_time"


class TensorBoard:
    """Scalars of one event file, a block for those of one step that stand together."""

    framework, shape = "any", "TensorBoard events"

    def recognises(self, head: bytes, name: str) -> Recognised | None:
        """By the first event; whose it is, the tags of the first steps tell."""
        if FIRST_EVENT not in head[:FIRST_BYTES]:
            return None
        with tempfile.NamedTemporaryFile(prefix="rlaxes-events-") as spool:
            spool.write(head)
            spool.flush()
            quiet = Told(_quiet)
            tags = {tag for number, event in _events(spool.name, quiet) for tag, _ in _scalars(event, quiet, number)}
        return Recognised(framework_of(tags) or UNKNOWN, self.shape, None, "an event file by its first event")

    def blocks(self, stream: BinaryIO, warn: Warn) -> Iterator[Block]:
        """A block for the events of one step that stand together, with the first's `wall_time`; `line`s are events."""
        told = Told(warn)
        with tempfile.NamedTemporaryFile(prefix="rlaxes-events-") as spool:
            shutil.copyfileobj(stream, spool, 1 << 20)
            spool.flush()
            yield from _blocks(spool.name, told)
        told.end()


def _blocks(path: str, told: Told) -> Iterator[Block]:
    step, line, values, wall_time = 0, 0, dict[str, float](), math.nan
    for number, event in _events(path, told):
        for tag, value in _scalars(event, told, number):
            if values and (event.step != step or tag in values or len(values) >= MOST_TAGS):
                yield _block(step, line, values, wall_time)
                values = {}
            if not values:
                step, line, wall_time = event.step, number, event.wall_time
            values[tag] = value
    if values:
        yield _block(step, line, values, wall_time)


def _block(step: int, line: int, values: dict[str, float], wall_time: float) -> Block:
    if math.isfinite(wall_time):
        values.setdefault(WALL_TIME, wall_time)
    return Block(step, line, kind_of(values), values)


def _events(path: str, told: Told) -> Iterator[tuple[int, Any]]:
    """Every whole event and its number from 1."""
    from google.protobuf.message import DecodeError
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event

    read = number = 0
    try:
        for number, record in enumerate(RawEventFileLoader(path).Load(), 1):
            read += len(record) + FRAME_BYTES
            try:
                yield number, Event.FromString(record)
            except DecodeError:
                told(number, "a record that is no event: left out")
    except (MemoryError, OverflowError):
        pass  # a record that says to be longer than any machine holds
    if Path(path).stat().st_size > read:
        told(number + 1, "the file is cut or damaged within this event: read up to it")


def _scalars(event: Any, told: Told, number: int) -> Iterator[tuple[str, float]]:
    for value in event.summary.value:
        kind = value.WhichOneof("value")
        if kind == "simple_value":
            yield value.tag, value.simple_value
        elif kind == "tensor" and (found := _of_tensor(value.tensor)) is not None:
            yield value.tag, found
        elif kind:
            told(number, f"a value that is no single number ({kind}): left out")


def _of_tensor(tensor: Any) -> float | None:
    """The one number of a tensor; None where it has more, or text."""
    from tensorboard.util.tensor_util import make_ndarray

    if any(dimension.size != 1 for dimension in tensor.tensor_shape.dim):
        return None  # before it is made: a shape may ask for more memory than there is
    try:
        array = make_ndarray(tensor)
        return float(array.item()) if array.dtype.kind in "fiub" and array.size == 1 else None
    except (TypeError, ValueError):
        return None


def _quiet(line: int, words: str) -> None:
    """Looking is not reading."""
