"""A fault acts where, when and on whom the drill says, once in a cell."""

import errno
import multiprocessing
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.errors import SystemFailure
from harness.probe.faults import PROCESSES, Faults


def faults(folder: Path, me: str, /, attempt: int = 0, victim: str | None = None, **fault: Any) -> Faults:
    planned = {"point": "rollout.generate", "role": "rollout", "at": 2, "action": "raise"} | fault
    drill = {"name": "check", "restarts": 1, "faults": [planned]}
    return Faults.of({"directory": str(folder), "attempt": attempt, "fault": drill}, me, victim)


def test_acts_on_its_passing_and_once_in_a_cell(tmp_path: Path) -> None:
    mine = faults(tmp_path, "rollout-1")
    assert not mine.at("rollout.generate")
    assert not mine.at("publication.stage")
    with pytest.raises(SystemFailure, match=r"rollout\.generate of rollout-1"):
        mine.at("rollout.generate")
    replacement = faults(tmp_path, "rollout-1")
    assert not any(replacement.at("rollout.generate") for _ in range(5))


def test_acts_at_a_place_of_the_callers_own_count(tmp_path: Path) -> None:
    mine = faults(tmp_path, "trainer-0", point="trainer.update", role="trainer-0", at=7, action="corrupt")
    assert [step for step in range(10) if mine.at("trainer.update", step)] == [7]


def test_leaves_other_roles_and_later_attempts_alone(tmp_path: Path) -> None:
    for mine in (faults(tmp_path, "verifier-0"), faults(tmp_path, "rollout-0", attempt=1)):
        assert not any(mine.at("rollout.generate") for _ in range(5))
        assert mine.room("rollout.generate") is None
    other = faults(tmp_path, "rollout-0", role="rollout-1")
    assert not any(other.at("rollout.generate") for _ in range(5))


def test_says_how_far_off_it_is(tmp_path: Path) -> None:
    mine = faults(tmp_path, "trainer-0", role="trainer", point="checkpoint.write", at=100, action="enospc")
    assert mine.room("checkpoint.write") == 100
    mine.at("checkpoint.write", passings=60)
    assert mine.room("checkpoint.write") == 40
    with pytest.raises(OSError, match="No space") as caught:
        mine.at("checkpoint.write", passings=40)
    assert caught.value.errno == errno.ENOSPC
    assert mine.room("checkpoint.write") is None


def test_kills_its_own_process(tmp_path: Path) -> None:
    mine = faults(tmp_path, "rollout-0", action="kill", at=1)
    child = multiprocessing.get_context("fork").Process(target=mine.at, args=("rollout.generate",))
    child.start()
    child.join(30)
    assert child.exitcode == -signal.SIGKILL


def test_kills_the_role_where_it_is_another_process(tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    (tmp_path / PROCESSES).mkdir()
    (tmp_path / PROCESSES / "rollout-0").write_text("none", encoding="utf-8")
    (tmp_path / PROCESSES / "rollout-1").write_text(str(other.pid), encoding="utf-8")
    mine = faults(tmp_path, "rollout", victim="rollout-*", action="kill", at=1)
    assert not mine.at("rollout.generate")
    assert other.wait(30) == -signal.SIGKILL
    nobody = faults(tmp_path / "none", "rollout", victim="rollout-*", action="kill", at=1)
    (tmp_path / "none").mkdir()
    with pytest.raises(SystemFailure, match="no process of that name lives"):
        nobody.at("rollout.generate")
