"""How many cores other processes used while a cell ran: the machine's busy time less that of the cell and of us."""

import os
import resource
import time
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

IDLE = ("idle", "iowait")
TWICE = ("guest", "guest_nice")
"""Linux counts these in `user` and `nice` as well."""
NOT_COUNTED = "this system does not count the time of its processors"


@dataclass(frozen=True)
class _Used:
    """CPU seconds of a process with its children that it waited for, and who its parent was."""

    seconds: float
    parent: int


def core_seconds() -> tuple[float, float]:
    """Busy and counted seconds of the cores that we may run on, since the machine started. Time that a hypervisor gave
    to another machine (steal) counts as busy: we did not have it."""
    cores = psutil.cpu_times(percpu=True)
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(len(cores))
    if max(usable) < len(cores):
        cores = [cores[number] for number in usable]
    times = [core._asdict() for core in cores]
    counted = sum(seconds for core in times for name, seconds in core.items() if name not in TWICE)
    return counted - sum(core.get(name, 0.0) for core in times for name in IDLE), counted


def _harness_seconds() -> float:
    """CPU seconds of this process, and of those children, with theirs, that it waited for."""
    parts = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in parts)


def _used(process: psutil.Process) -> _Used | None:
    try:
        with process.oneshot():
            times = process.cpu_times()
            own, waited = times.user + times.system, times.children_user + times.children_system
            return _Used(own + waited, process.ppid())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None


class CpuWatch:
    """Counts from the moment it is made; to be told once a second which processes are the cell's.

    What a process used passes to its parent when that waits for it, and in the end to us. A process that outlived its
    parent passes nothing on: its last reading is kept. What it used after that reading counts as foreign.
    """

    def __init__(self) -> None:
        self._since, self._harness = time.monotonic(), _harness_seconds()
        self._busy, self._counted = core_seconds()
        self._living: dict[psutil.Process, _Used] = {}
        self._left = 0.0

    def look(self, members: Iterable[psutil.Process]) -> None:
        """Read the clocks of the cell's processes."""
        family = {member.pid for member in self._living} | {os.getpid()}
        now = {member: used for member in members if (used := _used(member)) is not None}
        gone = [used for member, used in self._living.items() if member not in now]
        self._left += sum(used.seconds for used in gone if used.parent not in family)
        self._living = now

    def own_seconds(self) -> float:
        """CPU seconds of the cell as last looked at, and of this process, since the start."""
        living = sum(used.seconds for used in self._living.values())
        return _harness_seconds() - self._harness + living + self._left

    def foreign_cores(self, members: Iterable[psutil.Process]) -> float | None:
        """Cores that others used on average since the start; None where the system does not count."""
        self.look(members)
        busy, counted = core_seconds()
        wall = time.monotonic() - self._since
        if counted - self._counted < wall / 2:
            return None
        return max(busy - self._busy - self.own_seconds(), 0.0) / wall
