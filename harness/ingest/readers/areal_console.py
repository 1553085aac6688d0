"""AReaL's console and its main.log: a line `Train step 940/4675 done.` and a table of its statistics under it.

The table is tabulate's fancy grid: pairs of name and value, four pairs a row, the last rows shorter. Steps are counted
from 1 here and from 0 in the event files of the same run.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from harness.ingest.clean import Line, lines
from harness.ingest.python_dict import number_of
from harness.ingest.reading import Block, Recognised, Warn
from harness.ingest.told import Told

DONE = re.compile(r"(?:^|INFO: |Step \d+/\d+ )Train step (\d{1,18})/\d+ done\.")
PART = re.compile(r"(?:^|INFO: )Stats \((\d{1,9})/(\d{1,9})\):")
MEMORY = re.compile(
    r"(Memory-Usage [^:|\n]{0,80}: )memory allocated \(GB\): ([\d.]+), memory reserved \(GB\): ([\d.]+), "
    r"device memory used/total \(GB\): ([\d.]+)/([\d.]+)\s*$"
)
MEMORY_KEYS = ("memory allocated (GB)", "memory reserved (GB)", "device memory used (GB)", "device memory total (GB)")
ENDED = re.compile(r"Training completes! (Total time elapsed) (\d+\.\d\d)\.\s*$")
NAME = re.compile(r"[A-Za-z_][\w/.@\-]*")
MOST_KEYS = 10_000
CELL, TOP, LINES, BOTTOM = "│", "╒", ("├", "╞"), "╘"
OWN_NAME = re.compile(r"StatsLogger INFO: |\(AReaL\) |Train step \d+/\d+ done\.|areal[./](?:trainer|infra|launcher)")


class ArealConsole:
    """Every table of statistics in a console log of AReaL, 2025-11 to 1.0.4."""

    framework, shape = "areal", "console"

    def recognises(self, head: bytes, name: str) -> Recognised | None:
        """By a line of its statistics logger, or a name of its own."""
        found = OWN_NAME.search(head.decode("utf-8", "replace"))
        return Recognised(self.framework, self.shape, None, found[0].strip()) if found else None

    def blocks(self, stream: BinaryIO, warn: Warn) -> Iterator[Block]:
        """A block a table. One whose step's line is not right before it has no step."""
        told = Told(warn)
        log = _Log(told)
        for line in lines(stream, warn):
            yield from log.line(line)
        yield from log.give()
        told.end()


class _Log:
    """What is known at a line: the step that was named last, the table that is open, memory that no step has yet."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self._named: int | None = None
        self._memory: dict[str, float] = {}
        self._open(None)

    def _open(self, step: int | None, scope: str = "", line: int = 0) -> None:
        self._step, self._scope, self._line = step, scope, line
        self._values: dict[str, float] = {}
        self._rows, self._bordered = False, False

    def line(self, line: Line) -> Iterator[Block]:
        """What a line adds, and the block that it completes."""
        text = line.text
        if CELL in text:
            self._row(line)
        elif "Train step " in text and (done := DONE.search(text)):
            yield from self.give()
            self._named = int(done[1])
            self._open(self._named, line=line.number)
            self._values, self._memory = self._memory, {}
        elif "Stats (" in text and (part := PART.search(text)):
            yield from self._part(int(part[1]), int(part[2]), line.number)
        elif TOP in text:
            yield from self.give() if self._rows else ()
            self._bordered = True
        elif BOTTOM in text:
            yield from self.give()
        elif "Memory-Usage " in text and not line.torn and (memory := MEMORY.search(text)):
            head, *numbers = memory.groups()
            samples = {head + key: number_of(raw) for key, raw in zip(MEMORY_KEYS, numbers, strict=True)}
            self._memory |= {key: value for key, value in samples.items() if value is not None}
            if len(self._memory) > MOST_KEYS:
                self._memory.clear()
        elif "Training completes!" in text and (ended := ENDED.search(text)):
            yield from self.give()
            yield Block(None, line.number, "summary", {ended[1]: float(ended[2])})
        elif self._rows and not self._bordered and not text.lstrip().startswith(LINES):
            yield from self.give()  # no border tells where such a table ends: another line does

    def give(self) -> Iterator[Block]:
        """The table that is open, if it has anything; a next one is of no step until one is named."""
        if self._values:
            yield Block(self._step, self._line, "training", self._values, self._scope)
        self._open(None)

    def _part(self, part: int, parts: int, line: int) -> Iterator[Block]:
        """`Stats (2/3):` a step may print several tables, one a minibatch in older versions."""
        if self._rows or self._step is None:
            yield from self.give()
            self._open(self._named if part > 1 else None, line=line)
        self._scope = f"stats {part}/{parts}" if parts > 1 else ""

    def _row(self, line: Line) -> None:
        cells = [cell.strip() for cell in line.text.split(CELL)[1:-1]]
        for name, value in zip(cells[::2], [*cells[1::2], ""], strict=False):
            if not NAME.fullmatch(name) or (self._step is None and "/" not in name):
                continue
            self._line, self._rows = self._line or line.number, True
            if len(self._values) > MOST_KEYS:
                self._warn(
                    line.number, f"a table of more than {MOST_KEYS} keys is none of AReaL's: the rest was left out"
                )
            elif (number := number_of(value)) is None:
                self._warn(line.number, f"{name[:60]}: {value[:60]!r} is no number: left out")
            else:
                self._values[name] = number
