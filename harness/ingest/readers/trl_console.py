"""TRL's console: Python's writing of a dict for each entry of the log, amid progress bars.

transformers before 5 prints numbers in full; from 5 on as text with 4 digits (`'num_tokens': '4.155e+06'`). A dict in
the middle of a line is a completion that somebody printed, or a chat message: an entry begins its line.
"""

import io
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from harness.ingest.clean import Line, lines
from harness.ingest.python_dict import Written, read_dict
from harness.ingest.readers.trl_progress import BAR, Mark, Progress
from harness.ingest.readers.trl_values import EVAL, SUMMARY, entry_block, key_of_rewards
from harness.ingest.reading import Block, Recognised, Warn
from harness.ingest.told import Told

OPENING = re.compile(r"\s*(\{)'")
OWN = ("GRPOTrainer", "GRPOConfig", "RLOOTrainer", "trl/trainer/grpo", "trl/trainer/rloo")
ENTRY_KEYS = {"loss", SUMMARY, f"{EVAL}loss", "eps"}
"""What a trainer's entry has one of: of a step, of the end, of an evaluation, of TRL's older RLOO and PPO."""
COUNTER, ROUNDED = "num_tokens", 10_000
MOST_HELD = 100
LONGEST = 64 * 1024
"""A line beyond this is no entry: one has a number for each of a few dozen keys."""
NARROWEST, MOST_WRAPPED = 40, 40
"""A terminal wraps a line into pieces of one width, which is at least so much; and an entry into no more of them."""


class TrlConsole:
    """Every entry that a trainer of TRL printed: GRPO, RLOO and PPO, 0.14 to 1.16."""

    framework, shape = "trl", "console"

    def recognises(self, head: bytes, name: str) -> Recognised | None:
        """By the first entry that speaks of rewards, or, in a run that died before it, by its trainer."""
        entries = _Entries(Told(lambda *_: None))
        for line in lines(io.BytesIO(head), lambda *_: None):
            entries.take(line)
        entries.end()
        for entry in entries.found:
            if key := key_of_rewards(entry.values):
                return Recognised(self.framework, self.shape, None, f"an entry with {key}")
        own = next((word for word in OWN if word.encode() in head), None)
        return Recognised(self.framework, self.shape, None, own) if own else None

    def blocks(self, stream: BinaryIO, warn: Warn) -> Iterator[Block]:
        """A block an entry, with the step that the training bar stood at when it was written; None where none did."""
        told = Told(warn)
        entries, steps = _Entries(told), 0
        for line in lines(stream, warn):
            entries.take(line)
            if entries.found:
                for block in entries.known():
                    steps += block.kind == "training"
                    yield block
        entries.end()
        for block in entries.known():
            steps += block.kind == "training"
            yield block
        if not steps:
            warn(0, "no entry of a training step in all of it")
        told.end()


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


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry, whose step may not be known yet."""

    line: int
    values: dict[str, float]
    mark: Mark | None


class _Entries:
    """Finds the entries, line by line; `found` are those that were not given out yet."""

    def __init__(self, told: Told) -> None:
        self._told, self._progress = told, Progress()
        self._open: _Open | None = None
        self.found: deque[_Entry] = deque()

    def take(self, line: Line) -> None:
        """Read on."""
        text = line.text
        if text.isspace():
            if not line.moved:
                self._progress.wiped()
            return
        if "%|" in text and (bar := BAR.match(text)):
            if line.moved:
                return
            self._progress.drawn(bar)
            text = text[bar.end() :]
            if not text:
                return
        if len(text) <= LONGEST and (found := OPENING.match(text)):
            self._begin(line._replace(text=text[found.start(1) :]))
            return
        self._progress.other()
        if self._open:
            self._go_on(self._open, line)

    def end(self) -> None:
        """The file ends here: an entry that it ends in is one without its last value."""
        self._progress.end()
        opened, self._open = self._open, None
        if opened is None:
            return
        written = opened.written()
        if opened.pieces[-1].torn and ENTRY_KEYS & written.numbers.keys():
            self._told(opened.pieces[0].number, "the file ends within this entry: its last value was left out")
            self._add(written, opened)
        else:
            self._cut(opened)

    def known(self) -> Iterator[Block]:
        """Give out the entries in their order, up to the first whose step is not known yet."""
        while self.found and ((mark := self.found[0].mark) is None or mark.known or len(self.found) > MOST_HELD):
            yield self._block(self.found.popleft())

    def _begin(self, line: Line) -> None:
        if self._open:
            self._cut(self._open)
            self._open = None
        written = read_dict(line.text)
        if not ENTRY_KEYS & written.numbers.keys():
            self._progress.other()
            return
        opened = _Open([line], self._progress.take())
        if written.whole:
            self._add(written, opened)
        else:
            self._open = opened

    def _go_on(self, opened: _Open, line: Line) -> None:
        if not opened.goes_on_in(line):
            self._cut(opened)
            self._open = None
            return
        opened.pieces.append(line)
        written = opened.written()
        if written.whole:
            self._open = None
            self._add(written, opened)

    def _cut(self, opened: _Open) -> None:
        self._told(opened.pieces[0].number, "an entry that something else is printed into: left out")

    def _add(self, written: Written, opened: _Open) -> None:
        line, values = opened.pieces[0].number, written.numbers
        for key, raw in written.other.items():
            self._told(line, f"{key[:60]}: {raw.strip()[:60]!r} is no number: left out")
        as_text = f"'{COUNTER}': '" in opened.pieces[0].text
        if as_text and values.get(COUNTER, 0.0) >= ROUNDED:
            del values[COUNTER]
            self._told(line, f"{COUNTER}: printed with 4 digits, which hide what a step adds: left out")
        self.found.append(_Entry(line, values, opened.mark))

    def _block(self, entry: _Entry) -> Block:
        step = self._progress.step_of(entry.mark, entry.values.get("epoch"))
        if not self._progress.fits:
            self._told(entry.line, "the progress bar does not fit the epochs from here on: no step is taken from it")
        elif step is None and SUMMARY not in entry.values:
            self._told(entry.line, "no progress bar tells the step of this entry: it has none")
        return entry_block(entry.values, entry.line, step)
