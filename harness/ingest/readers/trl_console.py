"""TRL's console: Python's writing of a dict for each entry of the log, amid progress bars.

transformers before 5 prints numbers in full; from 5 on as text with 4 digits (`'num_tokens': '4.155e+06'`). A dict in
the middle of a line is a completion that somebody printed, or a chat message: an entry begins its line.
"""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from harness.ingest.clean import Line, lines
from harness.ingest.python_dict import Written, read_dict
from harness.ingest.readers.trl_progress import BAR, Mark, Progress
from harness.ingest.readers.trl_values import EVAL, SUMMARY, entry_block, speaks_of_rewards
from harness.ingest.reading import Block, Recognised, Warn
from harness.ingest.told import Told

OPENING = re.compile(r"\s*(\{)'")
OWN = ("GRPOTrainer", "GRPOConfig", "RLOOTrainer", "trl/trainer/grpo", "trl/trainer/rloo")
ENTRY_KEYS = {"loss", SUMMARY, f"{EVAL}loss", "eps"}
"""What a trainer's entry has one of: of a step, of the end, of an evaluation, of TRL's older RLOO and PPO."""
COUNTER = "num_tokens"
NARROWEST, MOST_WRAPPED = 40, 40
"""A terminal wraps a line into pieces of one width, which is at least so much; and an entry into no more of them."""


class TrlConsole:
    """Every entry that a trainer of TRL printed: GRPO, RLOO and PPO, 0.14 to 1.16."""

    framework, shape = "trl", "console"

    def recognises(self, head: bytes, name: str) -> Recognised | None:
        """By the first entry that speaks of rewards, or, in a run that died before it, by its trainer."""
        for line in lines(io.BytesIO(head), lambda *_: None):
            found = OPENING.match(line.text, _after_bar(line.text))
            if found and speaks_of_rewards(read_dict(line.text, found.start(1)).numbers):
                return Recognised(self.framework, self.shape, None, line.text[found.start(1) :][:80])
        own = next((word for word in OWN if word.encode() in head), None)
        return Recognised(self.framework, self.shape, None, own) if own else None

    def blocks(self, stream: BinaryIO, warn: Warn) -> Iterator[Block]:
        """A block an entry, with the step that the training bar stood at when it was written; None where none did."""
        told = Told(warn)
        entries, steps = _Entries(told), 0
        for line in lines(stream, warn):
            if block := entries.of(line):
                steps += block.kind == "training"
                yield block
        if block := entries.last():
            steps += block.kind == "training"
            yield block
        if not steps:
            warn(0, "no entry of a training step in all of it")
        told.end()


def _after_bar(text: str) -> int:
    return found.end() if "%|" in text and (found := BAR.match(text)) else 0


@dataclass
class _Open:
    """An entry whose end was not met yet, in the pieces that a terminal wrapped it into."""

    pieces: list[Line]
    mark: Mark | None

    def goes_on_in(self, line: Line) -> bool:
        """Whether a line is its next piece: the line after the last, which was cut at the width or after a comma."""
        widths = {len(piece.text) for piece in self.pieces}
        wrapped = (len(widths) == 1 and max(widths) >= NARROWEST) or self.pieces[-1].text.rstrip().endswith(",")
        follows = line.number == self.pieces[-1].number + 1 and line.origin == self.pieces[-1].origin
        return wrapped and follows and len(self.pieces) < MOST_WRAPPED

    def written(self) -> Written:
        """What its pieces say together."""
        return read_dict("".join(piece.text for piece in self.pieces))


class _Entries:
    """Finds the entries, line by line."""

    def __init__(self, told: Told) -> None:
        self._told, self._progress = told, Progress()
        self._open: _Open | None = None

    def of(self, line: Line) -> Block | None:
        """The entry that ends in a line."""
        text = line.text
        if text.isspace():
            self._progress.wiped()
            return None
        if "%|" in text and (bar := BAR.match(text)):
            self._progress.drawn(bar)
            text = text[bar.end() :]
            if not text:
                return None
        if found := OPENING.match(text):
            return self._begin(line._replace(text=text[found.start(1) :]))
        self._progress.other()
        return self._go_on(line) if self._open else None

    def last(self) -> Block | None:
        """The entry that the file ends in, without its last value."""
        opened, self._open = self._open, None
        if opened is None:
            return None
        written = opened.written()
        if not opened.pieces[-1].torn or not ENTRY_KEYS & written.numbers.keys():
            self._cut(opened)
            return None
        self._told(opened.pieces[0].number, "the file ends within this entry: its last value was left out")
        return self._block(written, opened)

    def _begin(self, line: Line) -> Block | None:
        if self._open:
            self._cut(self._open)
            self._open = None
        written = read_dict(line.text)
        if not ENTRY_KEYS & written.numbers.keys():
            self._progress.other()
            return None
        opened = _Open([line], self._progress.take())
        if written.whole:
            return self._block(written, opened)
        self._open = opened
        return None

    def _go_on(self, line: Line) -> Block | None:
        opened = self._open
        if opened is None:
            return None
        if not opened.goes_on_in(line):
            self._cut(opened)
            self._open = None
            return None
        opened.pieces.append(line)
        written = opened.written()
        if not written.whole:
            return None
        self._open = None
        return self._block(written, opened)

    def _cut(self, opened: _Open) -> None:
        self._told(opened.pieces[0].number, "an entry that something else is printed into: left out")

    def _block(self, written: Written, opened: _Open) -> Block:
        line, values = opened.pieces[0].number, written.numbers
        for key, raw in written.other.items():
            self._told(line, f"{key[:60]}: {raw.strip()[:60]!r} is no number: left out")
        if f"'{COUNTER}': '" in opened.pieces[0].text and values.pop(COUNTER, None) is not None:
            self._told(line, f"{COUNTER}: printed with 4 digits, which hide what a step adds: left out")
        step = self._progress.step(opened.mark, values.get("epoch"), training="loss" in values)
        if not self._progress.fits:
            self._told(line, "the progress bar does not fit the epochs of the entries: no step is taken from it")
        elif step is None and SUMMARY not in values:
            self._told(line, "no progress bar tells the step of this entry: it has none")
        return entry_block(values, line, step)
