"""Starts a cell, and again where it died and its fault has restarts left, in the same directory."""

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.contract import LedgerWriter
from harness.execute.cell import Cell
from harness.execute.killer import Killer
from harness.execute.launch import Launcher, Limits, Outcome
from harness.execute.verdict import Verdict, judge
from harness.probe.scratch import scratch_folder


@dataclass(frozen=True)
class Attempt:
    """One start of a cell. Times are perf_counter_ns; its words are bytes `log_start` to `log_end` of `output.log`."""

    number: int
    t_start: int
    t_end: int
    log_start: int
    log_end: int
    outcome: Outcome

    @property
    def died(self) -> bool:
        """Whether its process ended badly by itself: a new attempt may do better than one that hung or grew too big."""
        return self.outcome.ending == "exited" and self.outcome.returncode != 0

    def judged(self, cell: Cell, limits: Limits, *, finished: bool) -> Verdict:
        """What it is called; `finished` is whether its ledger says that the run came to its end."""
        words = range(self.log_start, self.log_end)
        return judge(self.outcome, cell.path / "output.log", limits, finished=finished, words=words)

    def as_dict(self, verdict: Verdict) -> dict[str, Any]:
        """For the cell's row."""
        ended = {"wall_s": self.outcome.wall_seconds, "returncode": self.outcome.returncode}
        return {"attempt": self.number, **verdict.as_dict(), **ended, "startup": self.outcome.startup}


class Attempts:
    """The attempts at one cell. Their streams are kept; compaction comes when the last has ended."""

    def __init__(
        self, cell: Cell, argv: list[str], env: dict[str, str], limits: Limits, on_poll: Callable[[], None]
    ) -> None:
        self._cell, self._argv, self._env, self._limits, self._on_poll = cell, argv, env, limits, on_poll

    def run(self, writer: LedgerWriter) -> list[Attempt]:
        """Run to an end that is good, or after which there is no further attempt; `writer` is the harness's ledger."""
        cell, ended = self._cell, list[Attempt]()
        killer = Killer(cell.path, cell.fault, lambda name, words: writer.write("faults", [_fault(name, words)]))
        while not ended or (ended[-1].died and len(ended) <= cell.fault.get("restarts", 0)):
            replace(cell, attempt=len(ended)).write()
            ended.append(self._start(len(ended), writer, killer))
            writer.write("manifest", [_note(ended[-1])])
        return ended

    def _start(self, number: int, writer: LedgerWriter, killer: Killer) -> Attempt:
        launcher = Launcher(self._cell.path, self._limits, writer if self._cell.observer else None)
        log = self._cell.path / "output.log"
        log_start = _size(log)

        def on_poll() -> None:
            self._on_poll()
            killer.poll(launcher.members)

        started = time.perf_counter_ns()
        try:
            outcome = launcher.run(self._argv, self._env, on_poll)
        finally:
            shutil.rmtree(scratch_folder(self._cell.directory), ignore_errors=True)
        return Attempt(number, started, launcher.ended_at, log_start, _size(log), outcome)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _note(attempt: Attempt) -> dict[str, str]:
    content = {"t_start": attempt.t_start, "t_end": attempt.t_end, **asdict(attempt.outcome)}
    return {"key": f"attempt:{attempt.number}", "value": json.dumps(content)}


def _fault(process: str, words: str) -> dict[str, Any]:
    now = time.perf_counter_ns()
    return {"t": now, "kind": "killed_on_purpose", "cause": "harness", "where": process, "detail": words}
