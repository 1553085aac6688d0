"""Whatever happens while a checkpoint is written, the last whole one is found, and no torn one ever is."""

import os
import random
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.reference.checkpoint import Checkpoint, CheckpointStore, Written, write_file, write_json
from harness.errors import SystemFailure
from harness.probe.faults import Faults
from tests.adapters.reference.cells import settings

FILES = {"trainer.safetensors": 5000, "state.json": 300, "queue.jsonl": 0}
ROOT = Path(__file__).resolve().parents[3]


def store(folder: Path, keep: int = 2, at: int | None = None, action: str = "raise") -> tuple[CheckpointStore, Faults]:
    planned = [{"point": "checkpoint.write", "role": "trainer", "at": at, "action": action}] if at is not None else []
    faults = Faults(settings(folder, fault={"name": "check", "restarts": 1, "faults": planned}), "trainer")
    return CheckpointStore(folder / "checkpoints", keep, faults), faults


def save(made: tuple[CheckpointStore, Faults], step: int, big: int = FILES["trainer.safetensors"]) -> Checkpoint:
    """Content that the step decides, so that a mixture of two would be seen."""
    store, faults = made
    partial = store.begin(step)
    draw = random.Random(step)
    files: dict[str, Written] = {}
    for name, size in (FILES | {"trainer.safetensors": big}).items():
        halves = [draw.randbytes(size // 2), draw.randbytes(size - size // 2)]
        files[name] = write_file(partial / name, halves, faults)
    files["own.json"] = write_json(partial / "own.json", {"step": step}, faults)
    return store.commit(partial, files, {"step": step})


def total_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in save(store(folder), 4).path.iterdir())


def check(folder: Path, allowed: set[int]) -> int:
    """The newest one is of an allowed step, and holds what was written at that step."""
    found, refused = CheckpointStore(folder / "checkpoints", 2, store(folder)[1]).newest()
    assert found is not None
    assert refused == []
    assert found.step in allowed
    assert found.facts == found.read_json("own.json") == {"step": found.step}
    draw = random.Random(found.step)
    content = (found.path / "trainer.safetensors").read_bytes()
    assert content == draw.randbytes(len(content) // 2) + draw.randbytes(len(content) - len(content) // 2)
    return found.step


def test_what_was_committed_is_found_again_and_older_ones_go(tmp_path: Path) -> None:
    made = store(tmp_path, keep=2)
    assert made[0].newest() == (None, [])
    for step in (2, 4, 10):
        saved = save(made, step)
        assert made[0].newest() == (saved, [])
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["step-10", "step-4"]


def test_a_step_is_saved_again_by_a_later_attempt(tmp_path: Path) -> None:
    made = store(tmp_path)
    save(made, 2)
    (made[0].begin(3) / "left").write_text("half done", encoding="utf-8")
    save(made, 2)
    assert check(tmp_path, {2}) == 2
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-2"]


def test_a_cut_at_any_byte_leaves_the_last_whole_one(tmp_path: Path) -> None:
    whole = total_bytes(tmp_path / "whole")
    large = FILES["trainer.safetensors"]
    # Every byte of the small files and of the manifest, and about forty places of the large one.
    for place in [*range(0, large, 131), *range(large - 3, whole + 1)]:
        (tmp_path / "faults" / "0").unlink(missing_ok=True)
        if place % 100 < 2:
            save(store(tmp_path), 2 if place % 200 < 100 else 3)
        before = check(tmp_path, {2, 3})
        with pytest.raises((OSError, SystemFailure)):
            save(store(tmp_path, at=place, action="raise" if place % 2 else "enospc"), 4)
        assert check(tmp_path, {before}) == before


def test_a_cut_after_the_last_byte_cuts_nothing(tmp_path: Path) -> None:
    save(store(tmp_path, at=total_bytes(tmp_path / "whole") + 1), 4)
    check(tmp_path, {4})


@given(place=st.integers(1, 5000), step=st.sampled_from([2, 4]))
def test_a_byte_that_the_disk_changed_is_never_loaded(
    tmp_path_factory: pytest.TempPathFactory, place: int, step: int
) -> None:
    folder = tmp_path_factory.mktemp("corrupt")
    save(store(folder), 2)
    save(store(folder, at=place, action="corrupt"), 4)
    found, refused = store(folder)[0].newest()
    assert found is not None
    assert found.step == 2
    assert refused == ["step-4: trainer.safetensors is not as it was written"]


@given(draw=st.randoms(use_true_random=False))
def test_files_that_are_cut_changed_or_missing_are_refused(
    tmp_path_factory: pytest.TempPathFactory, draw: random.Random
) -> None:
    folder = tmp_path_factory.mktemp("torn")
    save(store(folder), 2)
    newest = save(store(folder), 4).path
    file = newest / draw.choice(["trainer.safetensors", "state.json", "own.json", "manifest.json"])
    content = file.read_bytes()
    place = draw.randrange(len(content))
    change = draw.choice(["cut", "flip", "missing", "longer"])
    if change == "missing":
        file.unlink()
    elif change == "longer":
        file.write_bytes(content + content)
    else:
        flipped = content[:place] + bytes([content[place] ^ (1 << draw.randrange(7))]) + content[place + 1 :]
        file.write_bytes(content[:place] if change == "cut" else flipped)
    found, refused = store(folder)[0].newest()
    assert found is not None
    assert found.step == 2 or (file.name == "manifest.json" and found.facts == {"step": 4})
    assert len(refused) == (found.step == 2)


WRITER = """
import sys
from itertools import count
from pathlib import Path
from tests.adapters.reference.test_checkpoint import save, store

made = store(Path(sys.argv[1]))
for step in count(int(sys.argv[2])):
    save(made, step, big=1 << 20)
    print(step, flush=True)
"""


def test_sigkill_at_any_moment_leaves_a_whole_one(tmp_path: Path) -> None:
    draw, first = random.Random(7), 1
    save(store(tmp_path), 0)
    for _ in range(6):
        command = [sys.executable, "-c", WRITER, str(tmp_path), str(first)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            said = int(writer.stdout.readline())
            time.sleep(draw.uniform(0.0, 0.05))
            os.kill(writer.pid, signal.SIGKILL)
            said = max([said, *(int(line) for line in writer.stdout.read().split())])
        # It was killed after it said so, or between its rename and saying so.
        first = check(tmp_path, {said, said + 1}) + 1


def test_steps_are_ordered_as_numbers(tmp_path: Path) -> None:
    made = store(tmp_path, keep=3)
    for step, _ in zip(count(8), range(4), strict=False):
        save(made, step)
    assert check(tmp_path, {11}) == 11
