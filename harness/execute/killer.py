"""Kills a process of a running cell from outside, as its fault says: which one and when are drawn by a seed."""

import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import psutil

from harness.errors import UserError
from harness.execute.launch import progress_of
from harness.probe.faults import PROCESSES

UNITS = ("seconds", "steps")


@dataclass(frozen=True)
class Kill:
    """One kill: of a process whose name the glob `process` fits, once the cell is `moment` seconds or steps old. Names
    are those of ledgers; where no ledger's fits, those that processes bear themselves (`raylet`)."""

    process: str
    unit: str
    moment: float

    @classmethod
    def drawn(cls, wanted: Mapping[str, Any], draw: random.Random) -> "Kill":
        """With its moment drawn between `low` and `high`; steps are whole up to the last, then part of one.

        Raises:
            UserError: the unit is none of `UNITS`.
        """
        if wanted["unit"] not in UNITS:
            raise UserError(f"fault.kills: unit {wanted['unit']} has to be one of {', '.join(UNITS)}")
        return cls(wanted["process"], wanted["unit"], draw.uniform(wanted["low"], wanted["high"]))


def kills_of(fault: Mapping[str, Any], draw: random.Random) -> list[Kill]:
    """Every kill that a fault plans, in the order of the settings."""
    return [Kill.drawn(wanted, draw) for wanted in fault.get("kills", ()) for _ in range(wanted.get("times", 1))]


class Killer:
    """Called several times a second while a cell runs; each of the fault's `kills` happens once, or as many `times` as
    it says, in whichever attempt its moment comes."""

    def __init__(self, directory: Path, fault: Mapping[str, Any], say: Callable[[str, str], None]) -> None:
        """`say` takes the name of a process that was killed, and one line about it."""
        self._directory, self._say = directory, say
        self._draw = random.Random(fault.get("seed", 0))
        self._left = kills_of(fault, self._draw)
        self._killed: set[psutil.Process] = set()
        self._started = self._stepped = time.monotonic()
        self._step, self._step_seconds = 0, 0.0

    def poll(self, members: Sequence[psutil.Process]) -> None:
        """Kill what is due. Only a process among `members` is killed: a pid in a file may be another's by now."""
        self._look()
        for kill in [kill for kill in self._left if self._age(kill.unit) >= kill.moment]:
            if victim := self._victim(kill, members):
                self._left.remove(kill)
                name, process = victim
                self._killed.add(process)
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGKILL)
                    self._say(name, f"SIGKILL to {name} at {self._age('seconds'):.2f} s, after {self._step} steps")

    def _look(self) -> None:
        progress = progress_of(self._directory)
        step = int(progress["done"]) if progress else 0
        if step > self._step:
            now = time.monotonic()
            self._step_seconds = (now - self._stepped) / (step - self._step) if self._step else 0.0
            self._step, self._stepped = step, now

    def _age(self, unit: str) -> float:
        """Seconds, or optimizer steps with the part of the next one that has probably passed."""
        now = time.monotonic()
        if unit == "seconds":
            return now - self._started
        part = (now - self._stepped) / self._step_seconds if self._step_seconds else 0.5
        return self._step + min(part, 0.99)

    def _victim(self, kill: Kill, members: Sequence[psutil.Process]) -> tuple[str, psutil.Process] | None:
        # They are looked up once a second: one that was killed since is among them still.
        by_pid = {member.pid: member for member in members if member not in self._killed}
        # A process that keeps several ledgers is as likely a victim as any other.
        said = {path.read_text(encoding="utf-8").strip(): path.name for path in self._named(kill.process)}
        found = {int(pid): name for pid, name in said.items() if pid.isdigit() and int(pid) in by_pid}
        if not found and not said:
            found = {member.pid: name for member in members if fnmatch(name := _name(member), kill.process)}
        pid = self._draw.choice([*found]) if found else None
        return None if pid is None else (found[pid], by_pid[pid])

    def _named(self, pattern: str) -> list[Path]:
        return sorted((self._directory / PROCESSES).glob(pattern))


def _name(process: psutil.Process) -> str:
    try:
        return str(process.name())
    except psutil.NoSuchProcess:
        return ""
