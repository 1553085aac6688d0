"""Which step an entry on TRL's console belongs to, from the training bar around it: the entry itself names none.

transformers writes an entry through the bar: the bar is wiped, the entry printed, the bar drawn again. What it shows
then is the step; what it showed before may lag behind, since a bar is drawn ten times a second at most. Where standard
output is buffered, entries come later and many at once, but wiping and drawing stay where they were: the first entry
belongs to the first of them.
"""

import math
import re
from collections import deque
from dataclasses import dataclass

BAR = re.compile(r"\s*\d+%\|[^|]*\| (\d{1,15})/\d{1,15} \[[^\]]*\]")
"""A bar without a description: the training's. That of an evaluation stands below it, so that the cursor moves."""
MOST_WAITING = 100_000
DECIMALS, DIGITS = 0.006, 6e-4
"""What an epoch may be off by, and what share of itself: transformers prints two decimals of it, from 5 on 4 digits."""


@dataclass
class Mark:
    """That something was written through the bar; `step` is None until it is drawn again (`known`), or for good."""

    step: int | None = None
    known: bool = False


class Progress:
    """Follows the training bar of one log."""

    def __init__(self) -> None:
        self._any_bar = False
        self._open: Mark | None = None
        self._waiting: deque[Mark] = deque(maxlen=MOST_WAITING)
        self._last = (0, 0.0)
        self._slowest, self._fastest = 0.0, math.inf
        self.fits = True

    def drawn(self, bar: re.Match[str]) -> None:
        """The bar was drawn."""
        self._any_bar = True
        if self._open is not None:
            self._open.step = int(bar[1])
            self.end()

    def wiped(self) -> None:
        """The bar was wiped."""
        if self._any_bar and self._open is None:
            self._open = Mark()
            self._waiting.append(self._open)

    def other(self) -> None:
        """Something that is no entry was printed. If nothing else waits, it is what the bar was wiped for; else it may
        have waited as long as the entries have."""
        if self._open is not None and len(self._waiting) == 1 and self._waiting[0] is self._open:
            self._waiting.clear()
            self._open = None

    def take(self) -> Mark | None:
        """The mark of the entry that is printed here; None where no bar was written through for it."""
        return self._waiting.popleft() if self._waiting else None

    def end(self) -> None:
        """What was not told until here never will be."""
        if self._open is not None:
            self._open.known = True
            self._open = None

    def step_of(self, mark: Mark | None, epoch: float | None) -> int | None:
        """The step of an entry; None where no bar tells it, or where bars and epochs do not fit (`fits` says so): then
        something else was written through the bar too, and which mark is whose cannot be told any more."""
        step = mark.step if mark is not None else None
        if step is not None and epoch is not None:
            self.fits = self.fits and self._fit(step, epoch)
        return step if self.fits else None

    def _fit(self, step: int, epoch: float) -> bool:
        """Whether there is a number of steps an epoch that this entry and all before it can have come from."""
        before, self._last = self._last, (step, epoch)
        if epoch < before[1]:  # begun anew
            self._slowest, self._fastest = 0.0, math.inf
            return True
        rounding = max(DECIMALS, DIGITS * epoch)
        self._slowest = max(self._slowest, (epoch - rounding) / (step + 1))
        self._fastest = min(self._fastest, (epoch + rounding) / (step - 1) if step > 1 else math.inf)
        return self._slowest <= self._fastest and (step > before[0] or epoch == before[1])
