"""Attempts at one cell: names of their processes, and which rows of earlier ones a restart has taken back [12.5.3].

The process that owns the history (`ROLLED_BACK`) says once an attempt where it goes on from, in the note
`resumed:<attempt>`: the mark that the restored checkpoint holds, or null where nothing was restored.
"""

from collections.abc import Iterable
from typing import Any

SEPARATOR = "~"
RESUMED = "resumed:"


def process_name(process: str, attempt: int) -> str:
    """The name that `process` writes under in an attempt: its own in the first, `<process>~<attempt>` after.

    Raises:
        ValueError: the name holds a `~`.
    """
    if SEPARATOR in process:
        raise ValueError(f"a process name has no {SEPARATOR}: {process}")
    return f"{process}{SEPARATOR}{attempt}" if attempt else process


def split_name(name: str) -> tuple[str, int]:
    """The process and the attempt of a name that `process_name` made."""
    process, _, attempt = name.partition(SEPARATOR)
    return process, int(attempt or 0)


class History:
    """What is left of each attempt's rows: followed back from the last restart, mark by mark."""

    def __init__(self, notes: Iterable[tuple[str, dict[str, Any]]]) -> None:
        """Take the `resumed` notes as (name of the process that wrote it, content)."""
        marks: dict[str, dict[int, dict[str, Any] | None]] = {}
        for name, note in notes:
            process, attempt = split_name(name)
            marks.setdefault(process, {})[attempt] = note["mark"]
        self._kept = {
            (process, attempt): flushes
            for process, of_attempt in marks.items()
            for attempt, flushes in _limits(of_attempt).items()
        }

    def keeps(self, name: str, table: str, flush: int) -> bool:
        """Whether a flush of a table of `ROLLED_BACK` is still part of the history."""
        kept = self._kept.get(split_name(name))
        return kept is None or flush < kept.get(table, 0)


def _limits(marks: dict[int, dict[str, Any] | None]) -> dict[int, dict[str, int]]:
    """How many flushes of each table stay, for each attempt that lost some; an attempt that says nothing of where it
    goes on from goes on from the end of the one before."""
    limits: dict[int, dict[str, int]] = {}
    attempt = max(marks)
    while attempt > 0:
        if attempt not in marks:
            attempt -= 1
            continue
        mark = marks[attempt] or {"attempt": -1, "flushes": {}}
        limits |= {earlier: {} for earlier in range(mark["attempt"] + 1, attempt)}
        attempt = mark["attempt"]
        if attempt >= 0:
            limits[attempt] = mark["flushes"]
    return limits
