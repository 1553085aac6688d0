"""Event files as the library writes them, and as a kill, a bit flip or a stranger leaves them."""

import io
import math
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboard.summary.writer.record_writer import RecordWriter
from tensorboard.util.tensor_util import make_tensor_proto

from harness.ingest.readers.tensorboard import TensorBoard
from harness.ingest.reading import Block
from tests import DATA

READER = TensorBoard()
REAL = next((DATA / "formats" / "tensorboard").glob("events.out.tfevents.*"))
CUT = "the file is cut or damaged within this event: read up to it"


def of(data: bytes) -> tuple[list[Block], list[tuple[int, str]]]:
    warnings: list[tuple[int, str]] = []
    return list(READER.blocks(io.BytesIO(data), lambda *told: warnings.append(told))), warnings


def written(*events: Event) -> bytes:
    file = io.BytesIO()
    writer = RecordWriter(file)
    for event in (Event(wall_time=1.0, file_version="brain.Event:2"), *events):
        writer.write(event.SerializeToString())
    return file.getvalue()


def scalar(step: int, tag: str, value: float, wall_time: float = math.nan) -> Event:
    event = Event(wall_time=wall_time, step=step)
    event.summary.value.add(tag=tag, simple_value=value)
    return event


def test_a_real_run_of_openrlhf() -> None:
    blocks, warnings = of(REAL.read_bytes())
    assert [block.step for block in blocks] == list(range(1, 7))
    assert all(len(block.values) == 26 for block in blocks)
    assert blocks[0].values["train/reward"] == 0.46875
    assert blocks[0].values["train/actor_lr"] == struct.unpack("<f", struct.pack("<f", 3e-4))[0]
    assert blocks[0].values["wall_time"] < blocks[-1].values["wall_time"]
    assert warnings[0][1] == "a value that is no single number (tensor): left out"
    found = READER.recognises(REAL.read_bytes(), REAL.name)
    assert found is not None
    assert found.framework == "openrlhf"


def test_what_the_library_s_writer_writes(tmp_path: Path) -> None:
    writer = EventFileWriter(str(tmp_path))
    for step in range(3):
        writer.add_event(scalar(step, "timing_s/gen", step + 0.5, 100.0 + step))
        writer.add_event(scalar(step, "timing_s/update_actor", 2.0, 100.25 + step))
    writer.close()
    (path,) = tmp_path.iterdir()
    blocks, warnings = of(path.read_bytes())
    first = {"timing_s/gen": 0.5, "timing_s/update_actor": 2.0, "wall_time": 100.0}
    assert blocks[0] == Block(0, 2, "training", first)
    assert (len(blocks), warnings) == (3, [])


def test_numbers_in_tensors_and_what_is_none() -> None:
    event = Event(step=4)
    for tag, tensor in {
        "float": make_tensor_proto(0.5, "float32"),
        "double": make_tensor_proto([0.1], "float64"),
        "whole": make_tensor_proto(7, "int64"),
        "several": make_tensor_proto([1.0, 2.0]),
        "text": make_tensor_proto("hello"),
    }.items():
        event.summary.value.add(tag=tag, tensor=tensor)
    huge = TensorProto(dtype=1, float_val=[3.0])
    huge.tensor_shape.dim.add(size=2**40)
    event.summary.value.add(tag="huge", tensor=huge)
    event.summary.value.add(tag="histogram").histo.bucket.append(1.0)
    (block,), warnings = of(written(event))
    numbers = {key: value for key, value in block.values.items() if key != "wall_time"}
    assert numbers == {"float": 0.5, "double": 0.1, "whole": 7.0}
    assert [words for _, words in warnings] == [
        "a value that is no single number (tensor): left out",
        "a value that is no single number (histo): left out",
        "a value that is no single number (tensor): left out (2 times more)",
    ]


def test_a_tag_again_in_one_step_is_another_block_and_validation_is_told() -> None:
    blocks, _ = of(written(scalar(1, "a", 1.0), scalar(1, "a", 2.0), scalar(2, "val/x", 3.0, 9.0)))
    assert [(block.step, block.kind, block.values) for block in blocks] == [
        (1, "training", {"a": 1.0}),
        (1, "training", {"a": 2.0}),
        (2, "validation", {"val/x": 3.0, "wall_time": 9.0}),
    ]


@pytest.mark.parametrize("length", [2**63, 2**62, 2**40])
def test_a_record_that_says_to_be_longer_than_any_machine_holds(length: int) -> None:
    head = struct.pack("<Q", length)
    data = written(scalar(1, "a", 1.0)) + head + struct.pack("<I", masked_crc32c(head)) + b"x" * 40
    blocks, warnings = of(data)
    assert [block.values for block in blocks] == [{"a": 1.0}]
    assert warnings == [(3, CUT)]


def test_a_record_of_something_else_is_passed_over() -> None:
    file = io.BytesIO(written(scalar(1, "a", 1.0)))
    file.seek(0, 2)
    RecordWriter(file).write(b"\xff\xff\xff")
    blocks, warnings = of(file.getvalue())
    assert len(blocks) == 1
    assert warnings == [(3, "a record that is no event: left out")]


GOOD = written(*(scalar(step, tag, step + 0.5) for step in range(3) for tag in ("a", "b")))


@settings(max_examples=25)
@given(st.integers(0, len(GOOD)))
def test_a_cut_loses_only_what_it_cuts(at: int) -> None:
    whole, _ = of(GOOD)
    blocks, warnings = of(GOOD[:at])
    flat = [(block.step, pair) for block in whole for pair in block.values.items()]
    read = [(block.step, pair) for block in blocks for pair in block.values.items()]
    assert read == flat[: len(read)]
    assert warnings == [] or [words for _, words in warnings] == [CUT]


@settings(max_examples=25)
@given(st.integers(0, len(GOOD) - 1), st.integers(1, 255))
def test_a_flipped_byte_never_becomes_a_number(at: int, change: int) -> None:
    damaged = GOOD[:at] + bytes([GOOD[at] ^ change]) + GOOD[at + 1 :]
    READER.recognises(damaged, "x")
    written_values = {(step, tag, step + 0.5) for step in range(3) for tag in ("a", "b")}
    blocks, _ = of(damaged)
    assert {(block.step, *pair) for block in blocks for pair in block.values.items()} <= written_values
