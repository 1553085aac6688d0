"""How many cores other processes used while a cell ran: the machine's busy time less that of the cell and of us."""

import os
import resource
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

IDLE = ("idle", "iowait")
TWICE = ("guest", "guest_nice")
"""Linux counts these in `user` and `nice` as well."""
NOT_COUNTED = "this system does not count the time of its processors"


@dataclass(frozen=True)
class _Used:
    """CPU seconds of a process, those of the children that it waited for (with theirs), and who its parent is."""

    own: float
    waited: float
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


def _harness_seconds() -> tuple[float, float]:
    """CPU seconds of this process, and of those children, with theirs, that it waited for."""
    own, waited = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime, waited.ru_utime + waited.ru_stime


def _used(process: psutil.Process) -> _Used | None:
    try:
        with process.oneshot():
            times = process.cpu_times()
            own, waited = times.user + times.system, times.children_user + times.children_system
            return _Used(own, waited, process.ppid())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None


class CpuWatch:
    """Counts from the moment it is made; to be told once a second which processes are the cell's.

    A process that ended keeps its last reading. A parent that waits for its children is told what they used to their
    ends, and what it is told beyond their last readings is theirs too, or that of children nobody saw. A parent that
    ignores the ends of its children (Ray's raylet), or ended before them, is told nothing: what such a child used after
    its last reading counts as foreign.
    """

    def __init__(self) -> None:
        self._since, (self._own, self._waited) = time.monotonic(), _harness_seconds()
        self._busy, self._counted = core_seconds()
        self._seen: dict[psutil.Process, _Used] = {}
        self._living: set[psutil.Process] = set()

    def look(self, members: Iterable[psutil.Process]) -> None:
        """Read the clocks of the cell's processes."""
        now = {member: used for member in members if (used := _used(member)) is not None}
        self._seen |= now
        self._living = set(now)

    def own_seconds(self) -> float:
        """CPU seconds of the cell as last looked at, and of this process, since the start."""
        read: dict[int, float] = defaultdict(float)
        for member, used in self._seen.items():
            if member not in self._living:
                read[used.parent] += used.own + used.waited
        own, waited = _harness_seconds()
        ours = own - self._own + max(waited - self._waited - read[os.getpid()], 0.0)
        beyond = sum(max(used.waited - read[member.pid], 0.0) for member, used in self._seen.items())
        return ours + beyond + sum(used.own for used in self._seen.values())

    def foreign_cores(self, members: Iterable[psutil.Process]) -> float | None:
        """Cores that others used on average since the start; None where the system does not count."""
        self.look(members)
        busy, counted = core_seconds()
        wall = time.monotonic() - self._since
        if counted - self._counted < wall / 2:
            return None
        return max(busy - self._busy - self.own_seconds(), 0.0) / wall
