"""What others used is the machine's busy time less the cell's and our own, wherever the cell's processes ended up."""

import os
import subprocess
import sys
import time
from contextlib import nullcontext
from typing import Any

import psutil
import pytest

from harness.execute import foreign_load
from harness.execute.attempts import Attempt
from harness.execute.foreign_load import CpuWatch, core_seconds
from harness.execute.launch import Outcome
from harness.execute.runner import foreign_of

BURN = "import time\nwhile time.process_time() < {seconds}: pass\n"


def _machine(monkeypatch: pytest.MonkeyPatch, **since: float) -> None:
    """Two cores whose counters are what a test says."""
    zero = dict.fromkeys(("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"), 0.0)
    fields = zero | {"guest": 0.0, "guest_nice": 0.0} | since
    core = type("Core", (), {"_asdict": lambda self: dict(fields)})
    monkeypatch.setattr(psutil, "cpu_times", lambda percpu: [core(), core()])
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)


def test_busy_is_all_but_idle_and_no_guest_counts_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    _machine(monkeypatch, user=5.0, guest=2.0, idle=3.0, iowait=1.0, steal=0.5)
    assert core_seconds() == (2 * 5.5, 2 * 9.5)


def test_what_is_not_the_cells_is_foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    _machine(monkeypatch)
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(foreign_load, "_harness_seconds", lambda: (0.5 if now[0] > 100 else 0.0, 0.0))
    watch = CpuWatch()
    now[0] = 110.0
    _machine(monkeypatch, user=4.0, idle=6.0)
    assert watch.foreign_cores([]) == pytest.approx((8.0 - 0.5) / 10)


def test_a_system_that_does_not_count_gives_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    _machine(monkeypatch)
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    watch = CpuWatch()
    now[0] = 110.0
    assert watch.foreign_cores([]) is None


PARENTS = {
    "waits": ("", "child.wait()"),
    "ends first": ("", "sys.stdin.readline()"),
    "ignores": ("signal.signal(signal.SIGCHLD, signal.SIG_IGN)", "while child.poll() is None: time.sleep(0.01)"),
}
"""What the parent of a process that burns does before it starts it, and after."""


def _burner(seconds: float, parent: str) -> subprocess.Popen[bytes]:
    before, after = PARENTS[parent]
    child = f"child = subprocess.Popen([sys.executable, '-c', {BURN.format(seconds=seconds)!r}])"
    code = f"import signal, subprocess, sys, time\n{before}\n{child}\n{after}"
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)


@pytest.mark.parametrize("parent", PARENTS)
def test_children_count_as_the_cells_own(parent: str) -> None:
    watch = CpuWatch()
    process = _burner(0.3, parent)
    family: dict[int, psutil.Process] = {}
    while process.poll() is None or any(_lives(member) for member in family.values()):
        family |= {one.pid: one for one in _below(process.pid)}
        watch.look([member for member in family.values() if _lives(member)])
        if parent == "ends first" and family and process.poll() is None:
            process.communicate(b"go\n")
        time.sleep(0.02)
    watch.look([])
    assert watch.own_seconds() >= 0.25


def _below(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


class Stub:
    """A process with clocks of its own."""

    def __init__(self, pid: int, parent: int, own: float, waited: float = 0.0) -> None:
        self.pid, self._parent = pid, parent
        self.own, self.waited = own, waited

    def oneshot(self) -> Any:
        return nullcontext()

    def cpu_times(self) -> Any:
        clocks = {"user": self.own, "system": 0.0, "children_user": self.waited, "children_system": 0.0}
        return type("Times", (), clocks)

    def ppid(self) -> int:
        return self._parent


def test_a_process_that_ended_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = [(0.0, 0.0)]
    monkeypatch.setattr(foreign_load, "_harness_seconds", lambda: ours[0])
    watch = CpuWatch()
    first, child, orphan = Stub(10, os.getpid(), 1.0), Stub(11, 10, 2.0), Stub(12, 1, 4.0)
    watch.look([first, child, orphan])  # type: ignore[list-item]
    assert watch.own_seconds() == 7.0
    watch.look([first])  # type: ignore[list-item]
    assert watch.own_seconds() == 7.0, "nobody waited for the child: its last reading stays"
    first.waited = 2.5
    watch.look([first])  # type: ignore[list-item]
    assert watch.own_seconds() == 7.5, "its parent was told of half a second more"
    ours[0] = (0.0, 3.75)
    watch.look([])
    assert watch.own_seconds() == 7.5 + 0.25, "and we of a quarter more of the parent"


def _attempt(cores: float | None, seconds: float) -> Attempt:
    return Attempt(0, 0, 1, 0, 0, Outcome("exited", 0, seconds, 0, "", foreign_cores=cores))


def test_attempts_weigh_as_long_as_they_took() -> None:
    assert foreign_of([_attempt(1.0, 10.0), _attempt(0.0, 30.0)]) == {"foreign_cores": 0.25, "foreign_reason": None}
    assert foreign_of([_attempt(1.0, 10.0), _attempt(None, 1.0)]) == {
        "foreign_cores": None,
        "foreign_reason": "this system does not count the time of its processors",
    }
