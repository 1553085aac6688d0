"""The processes of a cell: those that descend from its first one, and those that carry its mark.

A framework's daemons leave the process group, open sessions of their own, and outlive the parent that led to them. What
they keep is the environment that the cell was started with: the path of its `cell.json` in `RLAXES_CELL` is the mark.
"""

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from harness.execute.cell import CELL_FILE

GRACE_SECONDS = 5.0
POLL_SECONDS = 0.1
MARK = "RLAXES_CELL"


def mark_of(directory: Path) -> str:
    """What the processes of the cell in that directory carry in `MARK`."""
    return str(directory.resolve() / CELL_FILE)


def by_pid(pid: int) -> list[psutil.Process]:
    """The process of that id, or none."""
    try:
        return [psutil.Process(pid)]
    except psutil.NoSuchProcess:
        return []


def lineage(roots: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Those of some processes that still live, and all that descend from them. A pid that was given to another process
    since is not taken for the one that was seen."""
    members: dict[int, psutil.Process] = {}
    for root in roots:
        with suppress(psutil.NoSuchProcess):
            if root.is_running():
                members[root.pid] = root
                members |= {child.pid: child for child in root.children(recursive=True)}
    return list(members.values())


def carries(process: psutil.Process, mark: str) -> bool:
    """Whether a process was started with that mark; False where it has ended, or is another user's."""
    try:
        return process.environ().get(MARK) == mark
    except (psutil.Error, OSError):
        return False


def marked(mark: str) -> list[psutil.Process]:
    """Every process that carries the mark, wherever it is."""
    return [process for process in psutil.process_iter() if carries(process, mark)]


class Family:
    """The processes of one cell, as last looked up."""

    def __init__(self, first: int, mark: str) -> None:
        self._first, self._mark = first, mark
        self._judged: set[int] = set()
        self.members = by_pid(first)

    def look(self) -> list[psutil.Process]:
        """Those that live now. Costs a few milliseconds where no process of the machine is new."""
        present = set(psutil.pids())
        fresh = present - self._judged - {os.getpid()}
        self._judged &= present
        self._judged |= fresh
        found = {member.pid: member for member in lineage(by_pid(self._first))}
        strays = (process for pid in fresh - found.keys() for process in by_pid(pid) if carries(process, self._mark))
        kept = (member for member in self.members if member.is_running())
        self.members = list({member.pid: member for member in (*kept, *strays, *found.values())}.values())
        return self.members

    def end(self) -> None:
        """End them all, see `end_group`."""
        end_group(self._first, self.members, self._mark)


def end_group(pid: int, known: Iterable[psutil.Process], mark: str) -> None:
    """End a process group that we started and everything that came from it: first asked, then, after a grace, made to.

    Args:
        known: processes of it that were seen while it ran.
        mark: what its processes carry, by which those are found that nobody saw.
    """
    members = list(known)
    for sign in (signal.SIGTERM, signal.SIGKILL):
        members = lineage([*by_pid(pid), *members, *marked(mark)])
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, sign)
        for member in members:
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                member.send_signal(sign)
        deadline = time.monotonic() + GRACE_SECONDS
        while (living := [member for member in members if _lives(member)]) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        if not living and not marked(mark):
            return


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
