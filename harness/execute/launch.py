"""Runs one process group: output to a file, a time limit, a memory limit, and its memory sampled from outside."""

import ctypes
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

from harness.contract import LedgerWriter
from harness.contract.seal import write_json
from harness.errors import HarnessBug
from harness.execute.family import MARK, Family, by_pid, end_group, mark_of, marked
from harness.execute.foreign_load import CpuWatch
from harness.probe.memory import pss_bytes

POLL_SECONDS = 0.1
SAMPLE_SECONDS = 1.0
SAMPLE_SHARE = 0.02
"""The part of one core that reading memory may take: seventeen processes that hold torch cost 0.1 s a reading."""
PROCESS_FILE = "process.json"
PR_SET_PDEATHSIG = 1
Ending = Literal["exited", "timed_out", "out_of_memory"]


@dataclass(frozen=True)
class Limits:
    """Where a cell is ended: seconds on the wall, bytes of its whole process tree."""

    seconds: float
    memory_bytes: int


@dataclass(frozen=True)
class Outcome:
    """How a process group ended.

    Attributes:
        startup: what it said of itself before its first step, and at how many seconds.
        foreign_cores: cores that other processes used meanwhile; None where that cannot be told.
    """

    ending: Ending
    returncode: int
    wall_seconds: float
    peak_bytes: int
    last_sign: str
    startup: tuple[tuple[float, str], ...] = ()
    foreign_cores: float | None = None


def progress_of(directory: Path) -> dict[str, Any] | None:
    """What the cell last said of how far it is."""
    try:
        return dict(json.loads((directory / "progress.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def _die_with_parent() -> Callable[[], None] | None:
    """For the child, before it becomes the framework: let the kernel end it when the harness is killed."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        prctl = libc.prctl
    except (OSError, AttributeError):
        return None
    return lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def end_orphan(directory: Path) -> None:
    """End what an earlier, killed harness left running in a cell's directory, if they are still the same processes."""
    path, mark = directory / PROCESS_FILE, mark_of(directory)
    recorded = json.loads(path.read_text(encoding="utf-8"))["members"] if path.exists() else []
    found = [process for pid, _ in recorded for process in by_pid(pid)]
    same = [process for process in found if [process.pid, process.create_time()] in recorded] + marked(mark)
    if same:
        end_group(same[0].pid, same, mark)
    path.unlink(missing_ok=True)


class Launcher:
    """One process group under watch. `members` are its processes, looked up once a second; `ended_at` is when the first
    of them was seen to have ended, or was made to (perf_counter_ns)."""

    def __init__(self, directory: Path, limits: Limits, sampler: LedgerWriter | None) -> None:
        self._directory, self._limits, self._sampler = directory, limits, sampler
        self._peak = 0
        self._last_look = self._next_sample = 0.0
        self._signs: list[tuple[float, str]] = []
        self._recorded: set[int] = set()
        self._family: Family | None = None
        self._cpu = CpuWatch()
        self.ended_at = 0

    @property
    def members(self) -> list[psutil.Process]:
        """The processes of the group as they were last looked up."""
        return self._family.members if self._family else []

    def run(self, argv: list[str], env: dict[str, str], on_poll: Callable[[], None]) -> Outcome:
        """Run `argv` to its end, or to a limit. `on_poll` is called several times a second.

        The group is ended on any exception too (Ctrl-C included), so that nothing we started outlives us.
        """
        start = time.monotonic()
        (self._directory / "progress.json").unlink(missing_ok=True)
        with (self._directory / "output.log").open("ab") as output:
            process = subprocess.Popen(
                argv,
                cwd=self._directory,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_parent(),
            )
        self._family = Family(process.pid, mark_of(self._directory))
        try:
            self._remember()
            ending = self._watch(process, start, on_poll)
            self.ended_at = time.perf_counter_ns()
            foreign = self._cpu.foreign_cores(self._family.look())
        finally:
            self._family.end()
            process.wait()
            (self._directory / PROCESS_FILE).unlink(missing_ok=True)
        seconds = time.monotonic() - start
        said = self._last_sign(), tuple(self._signs)
        return Outcome(ending, process.returncode, seconds, self._peak, *said, foreign)

    def _watch(self, process: subprocess.Popen[bytes], start: float, on_poll: Callable[[], None]) -> Ending:
        while process.poll() is None:
            if time.monotonic() - start > self._limits.seconds:
                return "timed_out"
            if self._sample(process.pid) > self._limits.memory_bytes:
                return "out_of_memory"
            self._listen(time.monotonic() - start)
            on_poll()
            time.sleep(POLL_SECONDS)
        return "exited"

    def _listen(self, seconds: float) -> None:
        """Keep what the cell says of itself before its first step: later signs are counted, these would be lost."""
        said = progress_of(self._directory)
        if said and said["done"] == 0 and said["text"] not in [text for _, text in self._signs]:
            self._signs.append((round(seconds, 1), said["text"]))

    def _sample(self, pid: int) -> int:
        """PSS of all its processes in bytes; 0 where it is not time to read it, which walks every page table: once a
        second, or as seldom as `SAMPLE_SHARE` allows. Who its processes are is looked up once a second."""
        now = time.monotonic()
        if now - self._last_look < SAMPLE_SECONDS or self._family is None:
            return 0
        self._last_look = now
        self._cpu.look(self._family.look())
        self._remember()
        if now < self._next_sample:
            return 0
        before = time.process_time()
        total = sum(pss_bytes(member.pid) or 0 for member in self.members)
        self._next_sample = now + (time.process_time() - before) / SAMPLE_SHARE
        self._peak = max(self._peak, total)
        if self._sampler is not None and total:
            row = {
                "t": time.perf_counter_ns(),
                "pid": pid,
                "phase": None,
                "component": "tree",
                "source": "pss",
                "bytes": total,
            }
            self._sampler.write("memory", [row])
        return total

    def _remember(self) -> None:
        """On disk too, so that the next harness finds them if this one is killed."""
        if {member.pid for member in self.members} == self._recorded:
            return
        self._recorded = {member.pid for member in self.members}
        started = []
        for member in self.members:
            with suppress(psutil.NoSuchProcess):
                started.append((member.pid, member.create_time()))
        write_json(self._directory / PROCESS_FILE, {"members": started})

    def _last_sign(self) -> str:
        progress = progress_of(self._directory)
        if progress is None:
            return "no sign of life"
        age = time.time() - (self._directory / "progress.json").stat().st_mtime
        return f"{progress['text']} ({progress['done']} of {progress['total']}), {age:.0f} s before the end"


def child_environment(import_path: Path, cell_file: Path, extra: dict[str, str], threads: int) -> dict[str, str]:
    """The environment of a framework's process: ours, less what would leak the harness's Python into it.

    Raises:
        HarnessBug: an adapter tries to set a variable that is the harness's own.
    """
    own = {MARK: str(cell_file), "PYTHONPATH": str(import_path)}
    if clash := own.keys() & extra.keys():
        raise HarnessBug(f"an adapter sets {sorted(clash)}, which are the harness's own")
    dropped = {"VIRTUAL_ENV", "PYTHONHOME", "PYTHONSTARTUP"}
    inherited = {key: value for key, value in os.environ.items() if key not in dropped}
    # OpenMP threads that spin while they wait made a step 13 times as long where one other process used a core.
    fixed = {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE"}
    # Ray would run its workers at 15: beside other work a cell with Ray would yield where one without Ray does not.
    fixed |= {"RAY_worker_niceness": "0"}
    fixed |= {"PYTHONUNBUFFERED": "1", "TOKENIZERS_PARALLELISM": "false"}
    return inherited | fixed | extra | own
