"""Dicts of metrics in a console log of SkyRL: on one line, or a line an item, with other processes' lines between."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from harness.ingest.clean import Line
from harness.ingest.python_dict import read_dict
from harness.ingest.reading import Warn

HEADED = re.compile(r"(?:^|[|\-] )Step (\d{1,18}): *(?=$|\{)")
BEGINS = re.compile(r"(?:^|[|\-] )(?=\{')")
ITEM = re.compile(r"\s*'[^'\n]{1,300}':")
OWN_KEY = re.compile(
    r"'(?:(?:policy|critic|async|timing|trainer|reward|loss|generate|eval|vllm|ray)/[^']*|"
    r"final_loss|policy_loss|policy_lr|critic_loss|raw_grad_norm)':"
)
MOST_LINES = 5000
"""Of one dict, with the lines of others that stand between."""


@dataclass(frozen=True)
class Metrics:
    """A dict's numbers, where it begins, and the step that stands before it."""

    step: int | None
    line: int
    numbers: dict[str, float]


class Dicts:
    """Puts the lines of a dict together.

    Attributes:
        within: whether the last line was a part of one.
    """

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self._parts: list[str] = []
        self._head: tuple[int | None, int] | None = None
        self._lines = 0
        self.within = False

    def take(self, line: Line) -> Iterator[Metrics]:
        """The dicts that a line completes: one, two where it also cuts off the one before it, mostly none."""
        self.within = False
        if "Step " in line.text and (headed := HEADED.search(line.text)):
            yield from self.rest()
            self.within, self._head = True, (int(headed[1]), line.number)
            yield from self._begin(line.text[headed.end() :], line)
        elif "{'" in line.text and (begins := BEGINS.search(line.text)):
            text = line.text[begins.end() :]
            waits = self._head is not None and not self._parts
            if waits or OWN_KEY.search(text):
                if not waits:
                    yield from self.rest()
                    self._head = None, line.number
                self.within = True
                yield from self._begin(text, line)
        elif self._parts:
            yield from self._go_on(line)

    def rest(self) -> Iterator[Metrics]:
        """What is open, as far as it is whole."""
        if self._parts:
            yield self._told()
        self._parts, self._head, self._lines = [], None, 0

    def _begin(self, text: str, line: Line) -> Iterator[Metrics]:
        if not text.strip():
            return
        self._parts = [text]
        if text.rstrip().endswith("}"):
            yield from self.rest()

    def _go_on(self, line: Line) -> Iterator[Metrics]:
        self._lines += 1
        text = line.text.rstrip()
        if (ITEM.match(text) and not line.torn) or (text.endswith("}") and ITEM.match(text)):
            self.within = True
            self._parts.append(text)
        if (self.within and text.endswith("}")) or self._lines > MOST_LINES:
            yield from self.rest()

    def _told(self) -> Metrics:
        step, line = self._head or (None, 0)
        written = read_dict("\n".join(self._parts))
        for key, raw in written.other.items():
            self._warn(line, f"{key[:60]}: {raw.strip()[:60]!r} is no number: left out")
        if not written.whole:
            self._warn(line, "this dict has no end: what may be cut of it was left out")
        return Metrics(step, line, written.numbers)
