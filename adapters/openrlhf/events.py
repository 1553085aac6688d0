"""Scalars of TensorBoard's event files, as OpenRLHF's logger writes them, by TensorBoard's own reader."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Scalar(NamedTuple):
    """One logged number; `value` has the 32 bits that the file has."""

    step: int
    tag: str
    value: float


def read_scalars(path: Path) -> Iterator[Scalar]:
    """All scalars of one event file in its order, up to the first record that was cut short or is no event."""
    from google.protobuf.message import DecodeError
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event

    try:
        for record in RawEventFileLoader(str(path)).Load():
            event = Event.FromString(record)
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    yield Scalar(event.step, value.tag, value.simple_value)
    except (DecodeError, MemoryError, OverflowError):
        return  # damaged: a length that no machine holds raises one of the last two
