"""Which step an entry on TRL's console belongs to, from the progress bars around it: the entry itself names none.

transformers writes an entry through the training bar: the bar is wiped, the entry printed, the bar drawn again as it
was. Where standard output is buffered, the entries come later and many at once, but the wiping and drawing stay where
they were: the first entry belongs to the first of them.
"""

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

BAR = re.compile(r"\s*\d+%\|[^|]*\| (\d{1,15})/(\d{1,15}) \[[^\]]*\]")
"""A bar without a description: the training's, and that of an evaluation within it."""
MOST_BARS, MOST_WAITING = 8, 100_000
ROUNDING, ROUGHLY = 0.006, 0.1
"""What an epoch may be off by when it is printed with two decimals; and how far apart two ways may count an epoch."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Where the bars stood when something was written through them: the count of each by its total, and which was drawn
    last."""

    counts: Mapping[int, int]
    last_total: int


class Progress:
    """Follows the bars of one log."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._last_total = 0
        self._wiped: Mark | None = None
        self._waiting: deque[Mark] = deque(maxlen=MOST_WAITING)
        self._training_total: int | None = None
        self._first: tuple[int, float] | None = None
        self.fits = True

    def drawn(self, bar: re.Match[str]) -> None:
        """A bar was drawn: one that was wiped and is drawn again as it was has been written through."""
        count, total = int(bar[1]), int(bar[2])
        if self._wiped is not None and self._wiped.counts.get(total) == count:
            self._waiting.append(self._wiped)
        self._wiped = None
        if total not in self._counts and len(self._counts) >= MOST_BARS:
            self._counts.clear()
        self._counts[total] = count
        self._last_total = total

    def wiped(self) -> None:
        """A bar was wiped."""
        self._wiped = Mark(dict(self._counts), self._last_total) if self._counts else None

    def other(self) -> None:
        """Something that is no entry was printed."""
        self._wiped = None

    def take(self) -> Mark | None:
        """The mark of the entry that is printed here; None where no bar was written through for it."""
        if self._wiped is not None:
            self._waiting.append(self._wiped)
            self._wiped = None
        return self._waiting.popleft() if self._waiting else None

    def step(self, mark: Mark | None, epoch: float | None, *, training: bool) -> int | None:
        """The step of an entry; None where no bar tells it, or where bars and epochs do not fit (`fits` says so)."""
        if mark is None:
            return None
        if training and self._training_total is None:
            self._training_total = mark.last_total
        step = mark.counts.get(self._training_total) if self._training_total is not None else None
        if step is not None and epoch is not None and not self._fit(step, epoch):
            self.fits = False
        return step if self.fits else None

    def _fit(self, step: int, epoch: float) -> bool:
        """Whether epoch and step grow alike: if not, something that was written through the bar was no entry."""
        if step <= 0 or epoch <= 0:
            return True
        first_step, first_epoch = self._first = self._first or (step, epoch)
        apart = abs(epoch / step - first_epoch / first_step)
        return apart <= ROUNDING / step + ROUNDING / first_step + ROUGHLY * first_epoch / first_step
