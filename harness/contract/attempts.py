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
    """What is left of each attempt's rows after all restarts."""

    def __init__(self, notes: Iterable[tuple[str, dict[str, Any]]]) -> None:
        """Take the `resumed` notes as (name of the process that wrote it, content)."""
        self._kept: dict[tuple[str, int], dict[str, int]] = {}
        for name, note in sorted(notes, key=lambda found: split_name(found[0])):
            process, attempt = split_name(name)
            mark = note["mark"] or {"attempt": -1, "flushes": {}}
            for earlier in range(max(mark["attempt"], 0), attempt):
                at_mark = mark["flushes"] if earlier == mark["attempt"] else {}
                self._cut(process, earlier, at_mark)

    def keeps(self, name: str, table: str, flush: int) -> bool:
        """Whether a flush of a table of `ROLLED_BACK` is still part of the history."""
        kept = self._kept.get(split_name(name))
        return kept is None or flush < kept.get(table, 0)

    def _cut(self, process: str, attempt: int, flushes: dict[str, int]) -> None:
        before = self._kept.get((process, attempt), flushes)
        self._kept[process, attempt] = {table: min(limit, flushes.get(table, 0)) for table, limit in before.items()}
