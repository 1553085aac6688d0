"""A console log as the lines that its programs printed: what terminals and launchers put around them is taken off.

Ray writes `(Worker pid=7, ip=10.0.0.1) ` before a line and `[repeated 5x across cluster]` behind it, torchrun
`[default0]:` or `[rank0]:`, loguru a time and a level; colours stand anywhere. A progress bar writes carriage returns,
so that a line of the file holds several lines of text: each is one, none overwrites another. What a terminal no longer
shows was printed all the same.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from harness.ingest.lines import ANSI, pieces
from harness.ingest.reading import Warn

COLOUR = re.compile(ANSI.decode())
UP = re.compile(r"\x1b\[\d*A$")
LEVEL = r"(?:TRACE|DEBUG|INFO|SUCCESS|WARNING|ERROR|CRITICAL)"
LAUNCHER = re.compile(r"\[((?:default|rank)\d+)\]: ?")
LOGURU = re.compile(
    rf"(?:\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \| {LEVEL} *\| [^|\n]{{0,199}}? - |\d\d:\d\d:\d\d +{LEVEL} )"
)
PREFIX_STARTS = frozenset("([0123456789")
LONGEST_NAME, MOST_PREFIXES = 200, 4
REPEATED_MARK = "x across cluster]"
REPEATED = re.compile(r"\s*\[repeated (\d+)x across cluster\](?: \(Ray deduplicates logs.*)?$")
ENDS = re.compile("[\r\n]")


class Line(NamedTuple):
    """One line of text. Bytes that are no UTF-8 stand in it as U+FFFD.

    Attributes:
        number: the line of the file that it stands on, from 1.
        origin: the process that printed it, as the launcher names it (`TaskRunner pid=7`, `rank0`); else empty.
        repeated: how many lines like it Ray left out.
        torn: what is read ends within it.
        moved: the cursor was moved up behind it: it is a bar below another one, or what wiped such a bar.
    """

    text: str
    number: int
    origin: str = ""
    repeated: int = 0
    torn: bool = False
    moved: bool = False


def lines(stream: BinaryIO, warn: Warn) -> Iterator[Line]:
    """Every line that is not empty, in the order of the file, as a stream."""
    cut = False
    for piece in pieces(stream, warn):
        text = piece.data.decode("utf-8", "replace")
        if cut:  # the rest of a line that was too long is no line of its own
            found = ENDS.search(text)
            text = text[found.start() :] if found else ""
        cut = cut if not text else text[-1] not in "\r\n"
        marked = "\r" in text or "\x1b" in text or REPEATED_MARK in text
        *whole, last = text.split("\n")
        for number, line in enumerate(whole, piece.first_line):
            if not line:
                continue
            if line[0] in PREFIX_STARTS or (marked and ("\r" in line or "\x1b" in line or REPEATED_MARK in line)):
                yield from _lines_of(line, number)
            else:
                yield Line(line, number)
        yield from _lines_of(last, piece.first_line + len(whole), torn=True)


def _lines_of(physical: str, number: int, *, torn: bool = False) -> Iterator[Line]:
    """The lines that one line of the file holds; all are of the process that its beginning names."""
    origin = ""
    *whole, last = physical.split("\r")
    for part in whole:
        text, own, repeated = _clean(part)
        origin = own or origin
        if text:
            yield Line(text, number, origin, repeated, moved=_moved(part))
    text, own, repeated = _clean(last)
    if text:
        yield Line(text, number, own or origin, repeated, torn, _moved(last))


def _moved(text: str) -> bool:
    return text.endswith("A") and UP.search(text) is not None


def _clean(text: str) -> tuple[str, str, int]:
    """The text alone, the process that it is of, and how often it was left out."""
    if "\x1b" in text:
        text = COLOUR.sub("", text)
    names: list[str] = []
    for _ in range(MOST_PREFIXES):
        if text[:1] not in PREFIX_STARTS or not (end := _prefix(text, names)):
            break
        text = text[end:]
    repeated = 0
    if REPEATED_MARK in text and (found := REPEATED.search(text)):
        text, repeated = text[: found.start()], int(found[1])
    return text, " ".join(names), repeated


def _prefix(text: str, names: list[str]) -> int:
    """Where what a launcher wrote before a line ends, 0 where it wrote nothing; the process that it names is noted."""
    if text[0] == "(":
        return _ray_prefix(text, names)
    if text[0] != "[":
        return found.end() if (found := LOGURU.match(text)) else 0
    if not (found := LAUNCHER.match(text)):
        return 0
    names.append(found[1])
    return found.end()


def _ray_prefix(text: str, names: list[str]) -> int:
    """`(name pid=7, ip=10.0.0.1) `; a name may have brackets of its own (`train(0)`)."""
    pid = text.find("pid=", 1, LONGEST_NAME)
    end = text.find(")", pid, LONGEST_NAME) if pid > 0 else -1
    opened, closed = text.find("(", 1, pid), text.find(")", 1, pid)
    if end < 0 or (closed >= 0 and not 0 < opened < closed):
        return 0
    names.append(text[1:end])
    return end + 1 + text.startswith(" ", end + 1)
