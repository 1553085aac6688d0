"""verl's console log: `step:3 - actor/pg_loss:0.01 - ...`, one line a step (verl/utils/tracking.py, `LocalLogger`).

Works on bytes, a piece of the file at a time: a line of the log is looked at only where it can be one of metrics.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from harness.ingest.lines import ANSI, Piece, pieces
from harness.ingest.reading import Block, Kind, Recognised, Warn

PREFIX = rb"(?:[` \t]|\(\w*[Tt]ask\w*[^)\n]*\)|%s)*" % ANSI
START = re.compile(rb"(?m)" + PREFIX + rb"step:(\d+)(?= - |[ \t\r]*$)")
"""Anchored at the start of a line: `training/global_step:1 - ` within one is not a step."""
CONTINUATION = re.compile(rb"(?: - )?[\w/@.+\-]*(?::[^\s:]+)?(?: - [\w/@.+\-]+(?::[^\s:]+)?)*[ \t\r]*")
ITEM = re.compile(rb"[\w/@.+\-]+:\S")
SEPARATOR = b" - "
MOST_DIGITS = 15
MOST_KEYS = 500
VALIDATION = ("val/", "val-core/", "val-aux/")
STEP_KEYS = (b"actor/", b"timing", b"critic/", b"val", b"perf/", b"global_seqlen/", b"training/", b"response_length/")
ANSI_RE = re.compile(ANSI)
NUMPY = re.compile(rb"np\.\w+\(")
"""numpy 2 prints `np.float64(0.5)` for a number."""
WORDS = {b"True": 1.0, b"False": 0.0}


class VerlConsole:
    """Every step line of a console log of verl, 2025-01 to 0.9.1."""

    framework, shape = "verl", "console"

    def recognises(self, head: bytes, name: str) -> Recognised | None:
        """By the first line of metrics with a key of verl's own, or, in a run that died before it, by its trainer."""
        for found in _starts(head):
            first = head[found.end() :].removeprefix(SEPARATOR)
            if first.startswith(STEP_KEYS):
                quoted = head[found.start() : found.start() + 80].split(b"\n")[0]
                return Recognised(self.framework, self.shape, None, ANSI_RE.sub(b"", quoted).decode("utf-8", "replace"))
        if b"verl/trainer/" in head or b"main_ppo.py" in head:
            return Recognised(self.framework, self.shape, None, "its entry point main_ppo.py")
        return None

    def blocks(self, stream: BinaryIO, warn: Warn) -> Iterator[Block]:
        """A block a step line; one that a terminal or a paste wrapped, even within a key, is put together again."""
        names = _Names()
        for piece in pieces(stream, warn):
            at = counted = 0
            number = piece.first_line
            while found := next(_starts(piece.data, at), None):
                number += piece.data.count(b"\n", counted, found.start())
                counted = found.start()
                text, at = _whole_line(piece, found.end())
                if len(found[1]) > MOST_DIGITS:
                    warn(number, "a step number without end: the line was left out")
                    continue
                values = _values(text, names, number, warn, torn=piece.torn and at >= len(piece.data))
                yield Block(int(found[1]), number, _kind(values), values)


def _starts(data: bytes, at: int = 0) -> Iterator[re.Match[bytes]]:
    """Every step line's beginning. `bytes.find` first: a regular expression at every line is ten times slower."""
    while (at := data.find(b"step:", at)) >= 0:
        found = START.match(data, data.rfind(b"\n", 0, at) + 1)
        if found and found.end() > at:  # or it is `timing_s/step:` further on in the line that it began
            yield found
        at = max(at + 5, found.end() if found else 0)


def _whole_line(piece: Piece, start: int) -> tuple[bytes, int]:
    """The text of a step line from `start` with the lines that go on from it, and where the next line begins."""
    data = piece.data
    end = _line_end(data, start)
    text = data[start:end].rstrip(b"\r")
    while end < len(data):
        after = _line_end(data, end + 1)
        more = data[end + 1 : after]
        if START.match(more) or not (CONTINUATION.fullmatch(more) and ITEM.search(more)):
            break
        text, end = text + more.rstrip(b"\r"), after
    return text, min(end + 1, len(data))


def _line_end(data: bytes, start: int) -> int:
    end = data.find(b"\n", start)
    return len(data) if end < 0 else end


class _Names(dict[bytes, str]):
    """Keys as text, each decoded once; and the keys of the last line of each length, as a pattern: most lines have the
    keys of one before them, and a pattern takes all numbers out of such a line at once."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[int, tuple[re.Pattern[str], tuple[str, ...]]] = {}

    def __missing__(self, key: bytes) -> str:
        name = self[key] = key.strip().decode("utf-8", "replace")
        return name

    def learn(self, keys: list[bytes]) -> None:
        """Expect these keys of another line."""
        if len(keys) <= MOST_KEYS:
            names = tuple(self[key] for key in keys)
            self._lines[len(keys)] = re.compile("".join(rf" - {re.escape(name)}:(\S+)" for name in names)), names

    def numbers(self, text: bytes) -> dict[str, float] | None:
        """The numbers of a line with the keys of one before it; None for any other line."""
        pattern, names = self._lines.get(text.count(SEPARATOR), (None, ()))
        # float() takes a str several times as fast as bytes.
        found = pattern.fullmatch(text.decode("ascii")) if pattern and text.isascii() else None
        try:
            return dict(zip(names, map(float, found.groups()), strict=True)) if found else None
        except ValueError:
            return None


def _values(text: bytes, names: _Names, number: int, warn: Warn, *, torn: bool) -> dict[str, float]:
    if not torn and (known := names.numbers(text)) is not None:
        return known
    if b"\x1b" in text:
        text = ANSI_RE.sub(b"", text)
    if b"np." in text:
        text = NUMPY.sub(b"", text).replace(b")", b"")
    items = text.removeprefix(SEPARATOR).split(SEPARATOR)
    if torn and items[-1].strip():
        warn(number, "the file ends within this line: its last value was left out")
        items.pop()
    parts = [item.rpartition(b":") for item in items]
    try:
        values = dict(zip([names[key] for key, _, _ in parts], map(float, [item[2] for item in parts]), strict=True))
        names.learn([key for key, _, _ in parts])
        return values
    except ValueError:
        return dict(_one_by_one(parts, names, number, warn))


def _one_by_one(
    parts: list[tuple[bytes, bytes, bytes]], names: _Names, number: int, warn: Warn
) -> Iterator[tuple[str, float]]:
    """Where something in a line is no number: what it is, and all that is one."""
    for key, colon, value in parts:
        if not colon:
            if value.strip():
                warn(number, f"no value after {value.strip()[:60].decode('utf-8', 'replace')!r}: left out")
            continue
        found = _spelt(value.strip())
        if found is None:
            warn(number, f"{names[key]}: {value[:60].decode('utf-8', 'replace')!r} is no number: left out")
        else:
            yield names[key], found


def _spelt(value: bytes) -> float | None:
    if value in WORDS:
        return WORDS[value]
    try:
        return float(value)
    except ValueError:
        return None


def _kind(values: dict[str, float]) -> Kind:
    return "validation" if values and all(key.startswith(VALIDATION) for key in values) else "training"
