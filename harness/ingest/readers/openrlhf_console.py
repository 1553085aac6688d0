"""OpenRLHF's console: `Global step 3: {...}`, one line a round of optimizer steps, and the progress bars around them.

A round's line is in ppo_trainer.py and ppo_trainer_async.py since 0.8; before, metrics stood in progress bars alone.
A bar counts batches of a data loader and not rounds, so that each kind of bar is a scope of its own.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from harness.ingest.lines import ANSI, Piece, pieces
from harness.ingest.python_dict import number_of, read_dict
from harness.ingest.readers.openrlhf_settings import BEGIN, OWN_GROUP, settings_of
from harness.ingest.reading import Block, Recognised, Warn
from harness.ingest.told import Told

MARKS = (b"Global step ", b"Episode [", b"Train epoch [", b"Watchdog caught ", BEGIN)
ROUND = re.compile(rb"Global step (\d{1,18}): (?=\{)")
SOURCE = re.compile(rb"ppo_trainer(_async)?\.py:\d{1,9}\] \W{0,12}\Z")
BAR = re.compile(
    rb"((?:Episode|Train epoch) \[\d{1,9}/\d{1,9}\]): +\d{1,3}%\|[^|\r\n]{0,400}\| "
    rb"(\d{1,18})/\d{1,18} \[([^\]\r\n]{0,4000})\]"
)
POSTFIX = re.compile(rb", (?=[A-Za-z_][\w/.\-]*=)")
LINE_END = re.compile(rb"[\r\n]")
OWN = re.compile(rb"openrlhf[./](?:cli|trainer)|group_name=openrlhf|PPOTrainer|ActorModelRayActor|PolicyModelActor")
ROUND_KEYS = (b"'policy_loss'", b"'actor_lr'", b"'critic_lr'", b"'rollout/")
BAR_KEYS = (b"policy_loss=", b"act_loss=", b"pg=", b"glen=")
ANSI_RE = re.compile(ANSI)
TIMING, TOTAL = "timing/", "timing/step_total"
PARTS = 4
SAME, OTHER = 1e-9, 0.02
"""Of `timing/step_total`: what a sum in another order may differ by, and what no cut digits explain."""
UNFINISHED = "a dict that ends with its line's end and not with its bracket: its last value was left out"
HANG = "the watchdog ended a collective operation here: not all ranks had joined it"
HUNG = b"Watchdog caught collective operation timeout"
MOST_BARS = 16
SHOWN, SOURCE_BYTES = 4000, 60
"""Bytes of a line that are looked at to recognise it, and before a round's for the file that wrote it."""


class OpenRlhfConsole:
    """Every round of a console log of OpenRLHF, and every bar that carries metrics; 0.2 to 0.11.2."""

    framework, shape = "openrlhf", "console"

    def recognises(self, head: bytes, name: str) -> Recognised | None:
        """By the first round or bar with a metric of its own, or, in a run that died before, by its own names."""
        for start in _marks(head):
            shown = head[start : _line_end(head, start, start + SHOWN)]
            keys = ROUND_KEYS if ROUND.match(shown) else BAR_KEYS if BAR.match(shown) else ()
            if any(key in shown for key in keys):
                return self._recognised(shown)
        own = OWN.search(head)
        return self._recognised(own[0]) if own and b"openrlhf" in head.lower() else None

    def _recognised(self, quoted: bytes) -> Recognised:
        return Recognised(self.framework, self.shape, None, quoted[:80].decode("utf-8", "replace"))

    def blocks(self, stream: BinaryIO, warn: Warn) -> Iterator[Block]:
        """A block a round, and one for each state of a bar's metrics; says where a run hung or ended without any."""
        bars, told, empty = _Bars(), Told(warn), True
        for piece in pieces(stream, warn):
            for block in _of_piece(piece, bars, told):
                empty &= block.kind == "config"
                yield block
        for block in bars.rest():
            empty = False
            yield block
        if empty:
            told(0, "no metric in all of it: no round of optimizer steps ended")
        told.end()


def _of_piece(piece: Piece, bars: "_Bars", warn: Warn) -> Iterator[Block]:
    data, number, counted, done = piece.data, piece.first_line, 0, 0
    for start in _marks(data):
        if start < done:
            continue  # within a dict that was read
        number += data.count(b"\n", counted, start)
        counted = start
        if found := ROUND.match(data, start):
            done = _line_end(data, found.end(), len(data))
            source = SOURCE.search(data, max(0, start - SOURCE_BYTES), start)
            yield _round(int(found[1]), data[found.end() : done], source, number, warn)
        elif bar := BAR.match(data, start):
            yield from bars.seen(bar, number)
        elif data.startswith(BEGIN, start):
            done = _line_end(data, start, len(data)) if OWN_GROUP in data[start : start + SHOWN] else done
            if done > start:
                yield Block(None, number, "config", {}, words=settings_of(_text(data[start:done])))
        elif data.startswith(HUNG, start):
            warn(number, HANG)


def _marks(data: bytes) -> Iterator[int]:
    """Where a round, a bar or a hang may stand, in order; by searches for bytes, far faster than an expression."""
    nearest = {mark: data.find(mark) for mark in MARKS}
    while found := [(at, mark) for mark, at in nearest.items() if at >= 0]:
        at, mark = min(found)
        yield at
        nearest[mark] = data.find(mark, at + len(mark))


def _line_end(data: bytes, start: int, most: int) -> int:
    """Where the line ends, or `most`; a carriage return ends it too."""
    found = LINE_END.search(data, start, most)
    return found.start() if found else min(most, len(data))


def _text(raw: bytes) -> str:
    return ANSI_RE.sub(b"", raw).decode("utf-8", "replace")


def _round(step: int, line: bytes, source: re.Match[bytes] | None, number: int, warn: Warn) -> Block:
    told = read_dict(_text(line))
    for key, raw in told.other.items():
        warn(number, f"{key[:60]}: {raw.strip()[:60]!r} is no number: left out")
    if not told.whole:
        warn(number, UNFINISHED)
    mode = ("async" if source[1] else "sync") if source else _mode(told.numbers)
    return Block(step, number, "training", told.numbers, words={"mode": mode} if mode else {})


def _mode(values: Mapping[str, float]) -> str | None:
    """Where the line does not name its file: `timing/step_total` is the sum of the other timings to the last digit in a
    synchronous run, and a clock of its own in an asynchronous one. None between the two, as where digits were cut."""
    parts = [value for key, value in values.items() if key.startswith(TIMING) and key != TOTAL]
    total = values.get(TOTAL)
    if total is None or len(parts) < PARTS:
        return None
    apart = abs(total - math.fsum(parts)) / max(abs(total), 1e-300)
    return "sync" if apart <= SAME else "async" if apart > OTHER else None


@dataclass
class _Bar:
    """A bar's last metrics: where they appeared, and the highest position that they stood at."""

    metrics: bytes
    line: int
    at: int


class _Bars:
    """A bar is drawn again and again: its metrics appear before its position moves, and stay until the next ones. Actor
    and critic draw bars of the same name, with other metrics in them."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, bytes], _Bar] = {}

    def seen(self, found: re.Match[bytes], line: int) -> Iterator[Block]:
        """What a drawn bar completes: the metrics that stood in it before, once they have changed."""
        name, at = found[1].decode(), int(found[2])
        cut = POSTFIX.search(found[3])
        if cut is None:  # a bar that begins anew has none yet
            yield from self._give([key for key in self._last if key[0] == name])
            return
        metrics = found[3][cut.end() :]
        key = name, metrics.partition(b"=")[0]
        last = self._last.get(key)
        if last is not None and metrics == last.metrics and at >= last.at:
            last.at = at
            return
        yield from self._give([key] if last else list(self._last)[: len(self._last) - MOST_BARS])
        self._last[key] = _Bar(metrics, line, at)

    def rest(self) -> Iterator[Block]:
        """What still stands in the bars where the log ends."""
        yield from self._give(list(self._last))

    def _give(self, keys: list[tuple[str, bytes]]) -> Iterator[Block]:
        for key in keys:
            yield _of_bar(key[0], self._last.pop(key))


def _of_bar(name: str, bar: _Bar) -> Block:
    pairs = (item.partition("=") for item in _text(bar.metrics).split(", "))
    values = {key.strip(): value for key, _, raw in pairs if (value := number_of(raw)) is not None}
    if name.startswith("Episode"):
        return Block(bar.at, bar.line, "training", values, name)
    return Block(None, bar.line, "training", values, name)
