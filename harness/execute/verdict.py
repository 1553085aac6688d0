"""What an ended cell is called: ok, or failed with a cause and one line of reason."""

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from harness.execute.launch import Limits, Outcome
from harness.execute.tracebacks import root_exception

TAIL_BYTES = 256 * 1024
OUT_OF_MEMORY = re.compile(r"OutOfMemoryError|MemoryError|can't allocate memory|CUDA out of memory|std::bad_alloc")
NO_MEMORY = "out of memory: "
"""How the reason of a cell begins that ran out of it."""
Status = Literal["ok", "failed", "not_run", "torn"]


@dataclass(frozen=True)
class Verdict:
    """The row of a cell that did or did not run. `cause`: system (the framework), infrastructure (disk, verifier,
    network), harness (us)."""

    status: Status
    cause: str | None = None
    reason: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return asdict(self)


def _tail(path: Path, words: range | None) -> str:
    if not path.exists():
        return ""
    start, end = (words.start, words.stop) if words is not None else (0, path.stat().st_size)
    first = max(start, end - TAIL_BYTES)
    with path.open("rb") as file:
        file.seek(first)
        return file.read(end - first).decode("utf-8", "replace")


def judge(outcome: Outcome, output_log: Path, limits: Limits, *, finished: bool, words: range | None = None) -> Verdict:
    """The verdict on an ended process group.

    Args:
        finished: whether its ledger carries the closing note and the note `finished`.
        words: the bytes of the log that are its own, where other attempts wrote to it as well; None for all.
    """
    if outcome.ending == "timed_out":
        return Verdict(
            "failed", "system", f"hung: no end within {limits.seconds:.0f} s; last sign: {outcome.last_sign}"
        )
    if outcome.ending == "out_of_memory":
        limit = limits.memory_bytes / 2**30
        return Verdict(
            "failed", "system", f"{NO_MEMORY}its processes passed {limit:.1f} GiB; last sign: {outcome.last_sign}"
        )
    if outcome.returncode == 0:
        unfinished = Verdict("failed", "harness", "ended with 0 but its ledger has no closing note: see output.log")
        return Verdict("ok") if finished else unfinished
    return _judge_crash(outcome, _tail(output_log, words))


def _judge_crash(outcome: Outcome, output: str) -> Verdict:
    found = root_exception(output)
    if outcome.returncode < 0 and found is None:
        return Verdict("failed", "system", f"killed by signal {-outcome.returncode}; last sign: {outcome.last_sign}")
    if found is None:
        return Verdict("failed", "system", f"ended with {outcome.returncode}; last sign: {outcome.last_sign}")
    short = found.words()
    if OUT_OF_MEMORY.search(f"{found.name}: {found.text}"):
        return Verdict("failed", "system", f"{NO_MEMORY}{short}")
    if "No space left on device" in found.text:
        return Verdict("failed", "infrastructure", f"disk full: {short}")
    if found.name.endswith(("HarnessBug", "BatchRefused", "HookDrift")):
        return Verdict("failed", "harness", short)
    return Verdict("failed", "system", short)
