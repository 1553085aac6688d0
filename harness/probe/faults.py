"""Faults on purpose: a drill names a point of a run and what happens there [12.5.3]. Standard library only.

The points are the same for every adapter; which of them its processes pass, each adapter says in its `adapter.yaml`
under `drills`.
"""

import errno
import os
import signal
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Protocol, Self

from harness.errors import SystemFailure

POINTS = (
    "trainer.after_checkpoint",
    "checkpoint.write",
    "trainer.update",
    "rollout.generate",
    "publication.ship",
    "publication.stage",
    "publication.activate",
    "verifier.score",
    "controller.step",
)
ACTIONS = ("kill", "raise", "hang", "enospc", "corrupt")
ACTED = "faults"
"""The folder in a cell's directory where each fault that acted leaves a file, named by its number."""
PROCESSES = "processes"
"""The folder in a cell's directory where each process that writes to the ledger leaves its pid, under its name."""
HANG_SECONDS = 3600.0


class Drilled(Protocol):
    """What is known of a cell: where it lives, how often it was started before, and its fault."""

    @property
    def directory(self) -> Path:
        """The cell's folder."""
        ...

    @property
    def attempt(self) -> int:
        """0 in the first attempt."""
        ...

    @property
    def fault(self) -> Mapping[str, Any]:
        """As in `conf/fault/`; may be empty."""
        ...


@dataclass(frozen=True)
class _Cell:
    directory: Path
    attempt: int
    fault: Mapping[str, Any]


class Faults:
    """The faults of one role (`trainer-0`, `rollout-1`, `verifier-0`, `controller`), which a drill names in full or by
    its kind (`rollout`). Each acts once in a cell: not in a later attempt, nor in the process that replaces a dead one.
    """

    def __init__(self, cell: Drilled, role: str, victim: str | None = None) -> None:
        """`victim` is a glob over the names under which processes write to the ledger: whom `kill` hits where the role
        is not this process."""
        self._fired, self._processes = cell.directory / ACTED, cell.directory / PROCESSES
        known = enumerate(cell.fault.get("faults", ())) if cell.attempt == 0 else ()
        self._mine = {number: fault for number, fault in known if fault["role"] in (role, role.rsplit("-", 1)[0])}
        self._role, self._victim = role, victim
        self._passed: Counter[str] = Counter()

    @classmethod
    def of(cls, cell: Mapping[str, Any], role: str, victim: str | None = None) -> Self:
        """The same, from the content of a `cell.json`."""
        return cls(_Cell(Path(cell["directory"]), cell["attempt"], cell["fault"]), role, victim)

    def at(self, point: str, place: int | None = None, *, passings: int = 1) -> bool:
        """This point is passed: `passings` times more, counted from 1, or at a `place` of its own count (a step). The
        fault that is due here kills this process, hangs, or raises; True where the caller must corrupt what it holds.

        Raises:
            SystemFailure: the action is `raise`.
            OSError: the action is `enospc`.
        """
        self._passed[point] = self._passed[point] + passings if place is None else place
        due = [number for number, fault in self._at(point) if fault["at"] == self._passed[point]]
        return any(self._act(number, point) for number in due)

    def room(self, point: str) -> int | None:
        """How many times this point may yet be passed until its next fault is due; None where none is."""
        left = [
            fault["at"] - self._passed[point] for number, fault in self._at(point) if not self._marker(number).exists()
        ]
        return min((distance for distance in left if distance >= 0), default=None)

    def _at(self, point: str) -> list[tuple[int, Mapping[str, Any]]]:
        return [(number, fault) for number, fault in self._mine.items() if fault["point"] == point]

    def _marker(self, number: int) -> Path:
        return self._fired / str(number)

    def _act(self, number: int, point: str) -> bool:
        self._fired.mkdir(exist_ok=True)
        try:
            self._marker(number).touch(exist_ok=False)
        except FileExistsError:
            return False
        action = self._mine[number]["action"]
        if action == "corrupt":
            return True
        if action == "kill" and self._victim is not None:
            _kill(self._processes, self._victim)
            return False
        return _end(action, f"{point} of {self._role}, on purpose")


def _kill(processes: Path, victim: str) -> None:
    """SIGKILL to the first process of that name.

    Raises:
        SystemFailure: there is none.
    """
    for path in sorted(processes.glob(victim)):
        try:
            os.kill(int(path.read_text(encoding="ascii")), signal.SIGKILL)
        except (ProcessLookupError, ValueError):
            continue
        return
    raise SystemFailure(f"a fault was to kill {victim}, and no process of that name lives")


def _end(action: str, where: str) -> NoReturn:
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action == "enospc":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), where)
    if action == "hang":
        time.sleep(HANG_SECONDS)
    raise SystemFailure(f"a fault at {where}")
