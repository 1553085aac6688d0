"""Runs one process group: output to a file, a time limit, a memory limit, and its memory sampled from outside."""

import ctypes
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

from harness.contract import LedgerWriter
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


def _tree(pid: int) -> list[int]:
    try:
        root = psutil.Process(pid)
        return [pid, *(child.pid for child in root.children(recursive=True))]
    except psutil.NoSuchProcess:
        return []


def end_group(pid: int) -> None:
    """End a process group that we started: first asked, then, after a grace, made to."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(pid, sign)
        except (ProcessLookupError, PermissionError):
            return
        deadline = time.monotonic() + GRACE_SECONDS
        while (
            time.monotonic() < deadline
            and psutil.pid_exists(pid)
            and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        ):
            time.sleep(POLL_SECONDS)


def end_orphan(directory: Path) -> None:
    """End what an earlier, killed harness left running in a cell's directory, if it is still the same process."""
    path = directory / PROCESS_FILE
    if not path.exists():
        return
    record = json.loads(path.read_text(encoding="utf-8"))
    if psutil.pid_exists(record["pid"]) and psutil.Process(record["pid"]).create_time() == record["created"]:
        end_group(record["pid"])
    path.unlink()


class Launcher:
    """One process group under watch."""

    def __init__(self, directory: Path, limits: Limits, sampler: LedgerWriter | None) -> None:
        self._directory, self._limits, self._sampler = directory, limits, sampler
        self._peak = 0
        self._last_sample = 0.0

    def run(self, argv: list[str], env: dict[str, str], on_poll: Callable[[], None]) -> Outcome:
        """Run `argv` to its end, or to a limit. `on_poll` is called several times a second.

        The group is ended on any exception too (Ctrl-C included), so that nothing we started outlives us.
        """
        start = time.monotonic()
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
            self._remember(process.pid)
            ending = self._watch(process, start, on_poll)
        finally:
            end_group(process.pid)
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
        total = sum(pss_bytes(member) or 0 for member in _tree(pid))
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

    def _remember(self, pid: int) -> None:
        try:
            created = psutil.Process(pid).create_time()
        except psutil.NoSuchProcess:
            return
        (self._directory / PROCESS_FILE).write_text(json.dumps({"pid": pid, "created": created}), encoding="utf-8")

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
