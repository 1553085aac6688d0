"""Writes TensorBoard event files with its own writer, for tests."""

import io
from collections.abc import Iterable
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter
from tensorboard.util.tensor_util import make_tensor_proto


def event(step: int, tag: str, value: float | None) -> Event:
    """One scalar; a value of None is a text summary, which has a tensor and no simple value."""
    said = {"tensor": make_tensor_proto("said")} if value is None else {"simple_value": value}
    return Event(wall_time=1e9, step=step, summary=Summary(value=[Summary.Value(tag=tag, **said)]))


def file_of(events: Iterable[tuple[int, str, float | None]]) -> bytes:
    content = io.BytesIO()
    writer = RecordWriter(content)
    for one in (Event(wall_time=1e9, file_version="brain.Event:2"), *(event(*one) for one in events)):
        writer.write(one.SerializeToString())
    return content.getvalue()


def write_events(folder: Path, events: Iterable[tuple[int, str, float | None]], name: str = "1.host.1.0") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"events.out.tfevents.{name}"
    path.write_bytes(file_of(events))
    return path
