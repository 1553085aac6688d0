"""The items of one JSON list or object, one at a time with the line that each begins on.

For documents whose shape only the whole tells (a table of steps by key, a list of records), which are small: one of
more than `LARGEST` is not read. A document cut anywhere gives the items that it has whole.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from harness.ingest.reading import Warn

LARGEST = 64 * 1024 * 1024
SPACE = re.compile(r"[ \t\r\n]*")


class Item(NamedTuple):
    """`key` is empty in a list; `text` is what the value was read from."""

    key: str
    value: Any
    line: int
    text: str


def json_items(stream: BinaryIO, warn: Warn) -> Iterator[Item]:
    """The items in the order of the file; nothing, and a warning, of what is no list or object or is too large."""
    data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        warn(0, f"a document of more than {LARGEST >> 20} MiB: not read")
        return
    text = data.decode("utf-8-sig", "replace")
    at = _skip(text, 0)
    if text[at : at + 1] not in ("{", "["):
        warn(1, "no JSON list or object: not read")
        return
    yield from _items(text, at, warn)


def _items(text: str, at: int, warn: Warn) -> Iterator[Item]:
    decoder = json.JSONDecoder()
    named, at = text[at] == "{", _skip(text, at + 1)
    line, counted = 1, 0
    while text[at : at + 1] not in ("]", "}"):
        line, counted = line + text.count("\n", counted, at), at
        key = ""
        try:
            if named:
                key, at = _key(decoder, text, at)
            value, end = decoder.raw_decode(text, at)
            if end == len(text):
                raise ValueError("17 may be the beginning of 170")
        except (ValueError, RecursionError):
            warn(line, "the document ends within this item, or it is no JSON: it and what follows were left out")
            return
        yield Item(key, value, line, text[at:end])
        at = _skip(text, end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)


def _key(decoder: json.JSONDecoder, text: str, at: int) -> tuple[str, int]:
    """The key of an object's item and where its value begins.

    Raises:
        ValueError: there is none.
    """
    key, at = decoder.raw_decode(text, at)
    at = _skip(text, at)
    if not isinstance(key, str) or text[at : at + 1] != ":":
        raise ValueError("no key of an object")
    return key, _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    found = SPACE.match(text, at)
    return found.end() if found else at
