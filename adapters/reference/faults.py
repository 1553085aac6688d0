"""Faults on purpose: a drill names a point of the loop and what happens there [12.5.3]. Standard library only."""

import errno
import os
import signal
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from adapters.reference.settings import Settings
from harness.errors import SystemFailure, UserError

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
HANG_SECONDS = 3600.0


class Faults:
    """The faults of one role (`trainer-0`, `rollout-1`, `verifier-0`, `controller`), which a drill names in full or by
    its kind (`rollout`). Each acts once in a cell: not in a later attempt, nor in the process that replaces a dead one.
    """

    def __init__(self, settings: Settings, role: str) -> None:
        """Raises UserError where the drill names a point or an action that there is not."""
        for fault in settings.fault.get("faults", ()):
            if fault["point"] not in POINTS or fault["action"] not in ACTIONS:
                raise UserError(f"fault {fault}: points are {', '.join(POINTS)}; actions are {', '.join(ACTIONS)}")
        self._fired = settings.directory / "faults"
        known = enumerate(settings.fault.get("faults", ())) if settings.attempt == 0 else ()
        self._mine = {number: fault for number, fault in known if fault["role"] in (role, role.rsplit("-", 1)[0])}
        self._role = role
        self._passed: Counter[str] = Counter()

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
        return _end(action, f"{point} of {self._role}, on purpose")


def _end(action: str, where: str) -> NoReturn:
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action == "enospc":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), where)
    if action == "hang":
        time.sleep(HANG_SECONDS)
    raise SystemFailure(f"a fault at {where}")
