"""NeMo RL's console: under `===== Step 3/50 =====` sections of bullets (nemo_rl/algorithms/grpo.py and utils.py).

A key is the section's head and the bullet's label as printed: `Training Results/Loss`, `Timing/generation`,
`Performance Metrics/E2E (Tokens/sec/gpu)`. The share behind a timer (`(73.4%)`) is the timer again and left out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from harness.ingest.clean import Line, lines
from harness.ingest.python_dict import read_dict
from harness.ingest.reading import Block, Kind, Recognised, Warn
from harness.ingest.told import Told

NUMBER = r"[-+]?(?:\d{1,99}(?:\.\d{0,99})?(?:e[-+]?\d{1,2})?|nan|inf)"
"""What never becomes an infinity that nobody wrote."""
LONGEST = 400
"""A line beyond this is of somebody else; patterns are not asked of it."""
MOST_KEYS = 10_000
EPOCH = re.compile(r"=====+ Epoch (\d{1,15})/(\d{1,15}) =====+\s*$")
STEP = re.compile(r"=====+ Step (\d{1,15})/\d+ =====+\s*$")
SECTION = re.compile(
    r"\s*[^\w\s]\W*(Training Results|Timing|Performance Metrics|Validation Results|Validation Timing"
    r"|Efficiency Summary)(?: for `[^`]*` set| \(Step \d+\))?:\s*$"
)
"""With the sign before it, which is one or two code points: a bare `Timing:` may be anybody's."""
BULLET = re.compile(rf"\s*(?:•|⏱\ufe0f?)\s+(\S[^:]*):\s+({NUMBER})(?:s|%| tokens| steps| TFLOPS)?(\s*\(.*\))?\s*$")
RATE = re.compile(rf"\s*- (\w[\w ]*\((?:Tokens|Samples)/sec(?:/gpu)?\)):\s+({NUMBER})\s*$")
SUMMED = "Efficiency Summary"
SUMMARY = re.compile(rf"  (\S[^%]*?)\s+({NUMBER})\s+(?:[\d.]+%|n/a)\s*$")
PER_RANK = re.compile(rf"\s*\(({NUMBER}) TFLOPS per rank\)")
CONTROLLER = re.compile(r"train step (\d{1,15})/\d+  trainer_v=(\d{1,15})  lag=(\d{1,15})\s*$")
"""What the single controller prints after the timers of a step, instead of a head before them."""
CONTROLLER_DICT = "step_metrics={"
"""And what it prints instead of results."""
HEAD_SIGNS = ("📊 Training Results:", "🔍 Performance Metrics:", "Running synchronous GRPO training", "nemo_rl/")


class NemoRlConsole:
    """Every block of a console log of NeMo RL, 2025-07 to 0.7, synchronous and asynchronous."""

    framework, shape = "nemo_rl", "console"

    def recognises(self, head: bytes, name: str) -> Recognised | None:
        """By the heads of its sections; in a run that died before them, by its loop or its package."""
        for sign in HEAD_SIGNS:
            if sign.encode() in head:
                return Recognised(self.framework, self.shape, None, sign)
        return None

    def blocks(self, stream: BinaryIO, warn: Warn) -> Iterator[Block]:
        """A block of kind training a step, and one of kind validation before it where the step validated."""
        told = Told(warn)
        reading = _Reading(told)
        for line in lines(stream, warn):
            yield from reading.line(line)
        yield from reading.end()
        told.end()


@dataclass
class _Open:
    """A block that is being read, and where its last line so far stands."""

    step: int | None
    line: int
    kind: Kind
    values: dict[str, float] = field(default_factory=dict)
    section: str = ""
    last_key: str = ""


class _Reading:
    """Where in the log a reader is: the step and the section that are open, who prints them, and the block before."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self._step: int | None = None
        self._scope = ""
        self._section = self._origin = ""
        self._open: _Open | None = None
        self._shape: dict[Kind, tuple[str, str]] = {}
        self._last_line = 0

    def line(self, line: Line) -> Iterator[Block]:
        """The blocks that this line ends; mostly none."""
        text, number = line.text, line.number
        if line.torn:
            self._torn(text, number)
        elif text.startswith(CONTROLLER_DICT) and self._open:
            self._dict(text, number)
        elif len(text) > LONGEST:
            return
        elif "=====" in text:
            yield from self._rule(text)
        elif text[-1] == ":" and (found := SECTION.match(text)):
            self._origin = line.origin
            yield from self._head(found[1])
        elif text.startswith("train step ") and (found := CONTROLLER.match(text)):
            yield from self._controller(found, number)
        elif self._section and line.origin == self._origin:
            yield from self._item(text, number)

    def _rule(self, text: str) -> Iterator[Block]:
        """The head of a step or of an epoch, within which steps are counted from 1 again."""
        if found := STEP.match(text):
            yield from self._close()
            self._step, self._section = int(found[1]), ""
        elif found := EPOCH.match(text):
            yield from self._close()
            self._scope = f"epoch {found[1]}" if found[2] != "1" else ""

    def _torn(self, text: str, number: int) -> None:
        if self._section and text.strip():
            self._warn(number, "the file ends within this line: it was left out")

    def _head(self, section: str) -> Iterator[Block]:
        kind: Kind = "validation" if section.startswith("Validation") else "training"
        known = self._open
        if known and (known.kind != kind or section == known.section or section == "Training Results"):
            yield from self._close()
        self._section = section

    def _item(self, text: str, number: int) -> Iterator[Block]:
        found = SUMMARY.match(text) if self._section == SUMMED else BULLET.match(text) or RATE.match(text)
        if found is None:
            if (bare := text.strip()).startswith("•") and not bare.endswith(":"):
                self._warn(number, f"{bare[:60]!r} has no number that can be read: left out")
            return
        key = f"{self._section}/{found[1]}"
        if self._open and key in self._open.values:
            self._warn(number, f"{key} a second time and no head of a step between: taken as another step, not known")
            yield from self._close()
        self._put(key, float(found[2]), number)
        if found.lastindex == 3 and (rank := PER_RANK.match(found[3])):
            self._put(f"{key} per rank", float(rank[1]), number)

    def _put(self, key: str, value: float, number: int) -> None:
        if self._open is None:
            kind: Kind = "validation" if self._section.startswith("Validation") else "training"
            self._open = _Open(self._step, number, kind)
        if len(self._open.values) >= MOST_KEYS:
            self._warn(number, f"more than {MOST_KEYS} numbers in one block: the rest left out")
            return
        self._open.values[key] = value
        self._open.section, self._open.last_key = self._section, key
        self._last_line = number

    def _controller(self, found: re.Match[str], number: int) -> Iterator[Block]:
        self._section = "train step"
        self._put("train step/trainer_v", float(found[2]), number)
        self._put("train step/lag", float(found[3]), number)
        if self._open is not None:
            self._open.step = int(found[1])
        yield from self._close()

    def _dict(self, text: str, number: int) -> None:
        self._section = "step_metrics"
        for key, value in read_dict(text, text.index("{")).numbers.items():
            self._put(f"step_metrics/{key}", value, number)

    def _close(self) -> Iterator[Block]:
        """The open block. A step's validation comes before its training, so that only the latter ends the step."""
        done, self._open = self._open, None
        if done is None:
            return
        if done.kind == "training":
            self._step = None
        self._shape[done.kind] = done.section, done.last_key
        yield Block(done.step, done.line, done.kind, done.values, self._scope, _mode(done.values))

    def end(self) -> Iterator[Block]:
        """The last block, with a warning where it ends before the place at which the one before it did."""
        done, before = self._open, self._shape.get(self._open.kind if self._open else "training")
        if done and before and done.section != "Timing" and (done.section, done.last_key) != before:
            self._warn(self._last_line, f"the file ends within this block: it goes no further than {done.last_key}")
        elif done and before and done.section != before[0]:
            self._warn(self._last_line, f"the file ends within this block, before its {before[0]}")
        yield from self._close()


def _mode(values: dict[str, float]) -> dict[str, str]:
    """How the run overlaps, by the timer that only one of its two loops has."""
    if "Timing/exposed_generation" in values:
        return {"mode": "async"}
    return {"mode": "sync"} if "Timing/generation" in values else {}
