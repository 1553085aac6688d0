"""Warnings of a reader, each of its kind once: a file of rubbish has as many as lines, and nobody reads those."""

from collections import Counter

from harness.ingest.reading import Warn

MOST_KINDS = 50


class Told:
    """Tells a kind of warning where it is first met and, at `end`, how often more. Holds `MOST_KINDS` at most."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self._seen: Counter[str] = Counter()

    def __call__(self, line: int, kind: str) -> None:
        """Say it, if it is the first of its kind."""
        if kind not in self._seen:
            if len(self._seen) >= MOST_KINDS:
                self._seen["other things like these"] += 1
                return
            self._warn(line, kind)
        self._seen[kind] += 1

    def end(self) -> None:
        """Say of each kind how often it was met after the first time."""
        for kind, times in self._seen.items():
            if times > 1:
                self._warn(0, f"{kind} ({times - 1} times more)")
