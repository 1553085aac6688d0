"""Runs one process group: output to a file, a time limit, a memory limit, and its memory sampled from outside."""

import ctypes
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

from harness.contract import LedgerWriter
from harness.contract.seal import write_json
from harness.errors import HarnessBug
from harness.probe.memory import pss_bytes

POLL_SECONDS = 0.1
SAMPLE_SECONDS = 1.0
GRACE_SECONDS = 5.0
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
    """How a process group ended."""

    ending: Ending
    returncode: int
    wall_seconds: float
    peak_bytes: int
    last_sign: str


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


def end_group(pid: int, known: Iterable[psutil.Process] = ()) -> None:
    """End a process group that we started and everything that came from it, also in sessions of its own (Ray's
    daemons, their workers): first asked, then, after a grace, made to.

    Args:
        known: processes of it that were seen while it ran; once their parent is dead nothing else leads to them.
    """
    members = lineage([*_found(pid), *known])
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, sign)
        members = lineage(members)
        for member in members:
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                member.send_signal(sign)
        deadline = time.monotonic() + GRACE_SECONDS
        while (living := [member for member in members if _lives(member)]) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        if not living:
            return


def _found(pid: int) -> list[psutil.Process]:
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


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def end_orphan(directory: Path) -> None:
    """End what an earlier, killed harness left running in a cell's directory, if they are still the same processes."""
    path = directory / PROCESS_FILE
    if not path.exists():
        return
    recorded = [tuple(entry) for entry in json.loads(path.read_text(encoding="utf-8"))["members"]]
    found = [process for pid, _ in recorded for process in _found(pid)]
    same = [process for process in found if (process.pid, process.create_time()) in recorded]
    if same:
        end_group(same[0].pid, same)
    path.unlink()


class Launcher:
    """One process group under watch. `members` are its processes, looked up once a second; `ended_at` is when the first
    of them was seen to have ended, or was made to (perf_counter_ns)."""

    def __init__(self, directory: Path, limits: Limits, sampler: LedgerWriter | None) -> None:
        self._directory, self._limits, self._sampler = directory, limits, sampler
        self._peak = 0
        self._last_sample = 0.0
        self.members: list[psutil.Process] = []
        self.ended_at = 0

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
        try:
            self._remember(_found(process.pid))
            ending = self._watch(process, start, on_poll)
            self.ended_at = time.perf_counter_ns()
        finally:
            end_group(process.pid, self.members)
            process.wait()
            (self._directory / PROCESS_FILE).unlink(missing_ok=True)
        return Outcome(ending, process.returncode, time.monotonic() - start, self._peak, self._last_sign())

    def _watch(self, process: subprocess.Popen[bytes], start: float, on_poll: Callable[[], None]) -> Ending:
        while process.poll() is None:
            if time.monotonic() - start > self._limits.seconds:
                return "timed_out"
            if self._sample(process.pid) > self._limits.memory_bytes:
                return "out_of_memory"
            on_poll()
            time.sleep(POLL_SECONDS)
        return "exited"

    def _sample(self, pid: int) -> int:
        """PSS of the whole tree in bytes, read at most once a second: reading it walks every page table."""
        now = time.monotonic()
        if now - self._last_sample < SAMPLE_SECONDS:
            return 0
        self._last_sample = now
        self._remember(self._living(pid))
        total = sum(pss_bytes(member.pid) or 0 for member in self.members)
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

    def _living(self, pid: int) -> list[psutil.Process]:
        """The tree, and what was seen in it before its parent died."""
        tree = {member.pid: member for member in lineage(_found(pid))}
        return [*tree.values(), *(m for m in self.members if m.pid not in tree and m.is_running())]

    def _remember(self, members: list[psutil.Process]) -> None:
        """On disk too, so that the next harness finds them if this one is killed."""
        if [member.pid for member in members] == [member.pid for member in self.members]:
            return
        self.members = members
        started = []
        for member in members:
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
    own = {"RLAXES_CELL": str(cell_file), "PYTHONPATH": str(import_path)}
    if clash := own.keys() & extra.keys():
        raise HarnessBug(f"an adapter sets {sorted(clash)}, which are the harness's own")
    dropped = {"VIRTUAL_ENV", "PYTHONHOME", "PYTHONSTARTUP"}
    inherited = {key: value for key, value in os.environ.items() if key not in dropped}
    # OpenMP threads that spin while they wait made a step 13 times as long where one other process used a core.
    fixed = {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE"}
    fixed |= {"PYTHONUNBUFFERED": "1", "TOKENIZERS_PARALLELISM": "false"}
    return inherited | fixed | extra | own
