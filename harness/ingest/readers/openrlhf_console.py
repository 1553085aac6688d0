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
from harness.ingest.reading import Block, Recognised, Warn
from harness.ingest.told import Told

PLACE = re.compile(
    rb"(?:ppo_trainer(?P<async>_async)?\.py:\d+\] [^\w\r\n]*)?Global step (?P<step>\d{1,18}): (?=\{)"
    rb"|(?P<bar>(?:Episode|Train epoch) \[\d+/\d+\]): +\d+%\|[^|\r\n]*\| (?P<at>\d{1,18})/\d+ \[(?P<told>[^\]\r\n]*)\]"
    rb"|Watchdog caught collective operation timeout: [^\r\n]*"
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
MOST_BARS = 16


class OpenRlhfConsole:
    """Every round of a console log of OpenRLHF, and every bar that carries metrics; 0.2 to 0.11.2."""

    framework, shape = "openrlhf", "console"

    def recognises(self, head: bytes, name: str) -> Recognised | None:
        """By the first round with a key of OpenRLHF's own, or by a bar of its loop beside its own names."""
        for found in PLACE.finditer(head):
            line = head[found.start() : _line_end(head, found.start())]
            if any(key in line for key in (ROUND_KEYS if found["step"] else BAR_KEYS)):
                return self._recognised(line)
        own = OWN.search(head)
        return self._recognised(own[0]) if own and b"openrlhf" in head.lower() else None

    def _recognised(self, quoted: bytes) -> Recognised:
        return Recognised(self.framework, self.shape, None, quoted[:80].decode("utf-8", "replace"))

    def blocks(self, stream: BinaryIO, warn: Warn) -> Iterator[Block]:
        """A block a round, and one for each state of a bar's metrics; says where a run hung or ended without any."""
        bars, told, empty = _Bars(), Told(warn), True
        for piece in pieces(stream, warn):
            for block in _of_piece(piece, bars, told):
                empty = False
                yield block
        for block in bars.rest():
            empty = False
            yield block
        if empty:
            told(0, "no metric in all of it: no round of optimizer steps ended")
        told.end()


def _of_piece(piece: Piece, bars: "_Bars", warn: Warn) -> Iterator[Block]:
    data, number, counted = piece.data, piece.first_line, 0
    for found in PLACE.finditer(data):
        number += data.count(b"\n", counted, found.start())
        counted = found.start()
        if found["step"]:
            yield _round(found, data[found.end() : _line_end(data, found.end())], number, warn)
        elif found["bar"]:
            yield from bars.seen(found, number)
        else:
            warn(number, HANG)


def _line_end(data: bytes, start: int) -> int:
    """Where the line ends; a carriage return ends it too."""
    found = LINE_END.search(data, start)
    return found.start() if found else len(data)


def _text(raw: bytes) -> str:
    return ANSI_RE.sub(b"", raw).decode("utf-8", "replace")


def _round(found: re.Match[bytes], line: bytes, number: int, warn: Warn) -> Block:
    told = read_dict(_text(line))
    for key, raw in told.other.items():
        warn(number, f"{key[:60]}: {raw.strip()[:60]!r} is no number: left out")
    if not told.whole:
        warn(number, UNFINISHED)
    mode = ("async" if found["async"] else "sync") if found[0].startswith(b"ppo_trainer") else _mode(told.numbers)
    return Block(int(found["step"]), number, "training", told.numbers, words={"mode": mode} if mode else {})


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
        name, at = found["bar"].decode(), int(found["at"])
        cut = POSTFIX.search(found["told"])
        if cut is None:  # a bar that begins anew has none yet
            yield from self._give([key for key in self._last if key[0] == name])
            return
        metrics = found["told"][cut.end() :]
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
