import math
import struct
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from adapters.openrlhf.events import Scalar, read_scalars
from adapters.openrlhf.native import native_figures
from harness.execute.cell import Cell
from tests.adapters.openrlhf.cells import cell_of
from tests.adapters.openrlhf.event_files import file_of, write_events

FLOATS = st.floats(width=32)
EVENTS = st.lists(st.tuples(st.integers(0, 2**62), st.text(max_size=20), FLOATS), max_size=8)


def same(left: Scalar, right: tuple[int, str, float]) -> bool:
    return left[:2] == right[:2] and struct.pack("<f", left.value) == struct.pack("<f", right[2])


@given(EVENTS)
def test_every_scalar_comes_back(tmp_path_factory: object, events: list[tuple[int, str, float]]) -> None:
    path = Path(str(tmp_path_factory.mktemp("events"))) / "file"  # type: ignore[attr-defined]
    path.write_bytes(file_of(events))
    found = list(read_scalars(path))
    assert len(found) == len(events)
    assert all(same(one, other) for one, other in zip(found, events, strict=True))


@given(EVENTS, st.data())
def test_a_torn_file_gives_what_was_written_whole(
    tmp_path_factory: object, events: list[tuple[int, str, float]], data: st.DataObject
) -> None:
    content = file_of(events)
    path = Path(str(tmp_path_factory.mktemp("torn"))) / "file"  # type: ignore[attr-defined]
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    found = list(read_scalars(path))
    assert all(same(one, other) for one, other in zip(found, events, strict=False))


@given(st.binary(max_size=200))
def test_what_is_no_event_file_raises_nothing(tmp_path_factory: object, content: bytes) -> None:
    path = Path(str(tmp_path_factory.mktemp("noise"))) / "file"  # type: ignore[attr-defined]
    path.write_bytes(content)
    list(read_scalars(path))


def run_of(folder: Path, **task: int) -> Path:
    """The folder of the event files of a cell."""
    Cell(**cell_of(folder, **task)).write()
    return folder / "openrlhf" / "events"


def test_global_steps_are_batches_from_one(tmp_path: Path) -> None:
    events = run_of(tmp_path)
    write_events(
        events / "attempt_0",
        [
            (1, "train/timing/generation", 4.5),
            (1, "train/generated_samples/text_summary", None),
            (2, "train/timing/generation", 0.5),
            (2, "train/policy_loss", math.nan),
            (2, "eval/eval_default_pass1", 1.0),
        ],
    )
    assert native_figures(tmp_path) == [(0, "timing/generation", 4.5), (1, "timing/generation", 0.5)]


def test_a_figure_of_a_batch_is_told_at_its_last_update(tmp_path: Path) -> None:
    events = run_of(tmp_path, minibatches=2, inner_epochs=2)
    write_events(events / "attempt_0", [(1, "train/reward", 0.5), (2, "train/reward", 0.75)])
    assert native_figures(tmp_path) == [(3, "reward", 0.5), (7, "reward", 0.75)]


def test_a_later_attempt_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    events = run_of(tmp_path)
    write_events(events / "attempt_0", [(1, "train/reward", 0.25), (2, "train/reward", 0.5), (3, "train/reward", 0.75)])
    write_events(events / "attempt_10", [(3, "train/reward", 3.0)])
    write_events(events / "attempt_2", [(2, "train/reward", 2.0), (3, "train/reward", 2.5)])
    assert native_figures(tmp_path) == [(0, "reward", 0.25), (1, "reward", 2.0), (2, "reward", 3.0)]


def test_a_run_that_died_early_said_nothing(tmp_path: Path) -> None:
    assert native_figures(tmp_path) == []
