"""A JSON object of metrics as numbers and words, whatever is nested in it by keys with `/`."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.ingest.reading import Kind

LONGEST_WORD = 200
"""A text beyond this is a completion or a prompt, and no setting or label."""
MOST_KEYS = 100_000
LARGEST_STEP = 2**53
VALIDATION = ("val/", "val-", "eval/", "validation/")
CLOCKS = frozenset({"wall_time", "_timestamp", "_runtime", "_step", "time", "epoch"})
"""Keys that stand beside those of a validation too."""


@dataclass
class Flat:
    """What an object holds: numbers (true and false as 1 and 0), words, and how many keys it has in all."""

    values: dict[str, float] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    keys: int = 0


def flatten(record: Mapping[str, Any], complain: Callable[[str], None], text: str = "Infinity") -> Flat:
    """Take an object apart; what is neither number nor word is left out and complained of.

    Args:
        text: that it was read from. 1e999 is no infinity that somebody wrote, though `json` makes one of it.
    """
    flat = Flat()
    open_ = [("", record)]
    while open_:
        prefix, inner = open_.pop()
        flat.keys += len(inner)
        if flat.keys > MOST_KEYS:
            complain(f"more than {MOST_KEYS} keys in one object: the rest left out")
            break
        if not prefix and set(map(type, inner.values())) == {float}:
            flat.values.update(inner)  # as most files are: at the speed of C
            continue
        for key, value in inner.items():
            kind = type(value)
            if kind is float:
                flat.values[prefix + key] = value
            elif kind is int or kind is bool:
                _whole(flat, prefix + key, value, complain)
            elif kind is dict and "_type" not in value:  # W&B's way to say that it is a picture, a table, a histogram
                open_.append((f"{prefix}{key}/", value))
            elif kind is str and len(value) <= LONGEST_WORD:
                flat.words[prefix + key] = value
            else:
                complain(f"{prefix + key}: {_what(value)} is no number: left out")
    if not "".join((*flat.values, *flat.words, *flat.words.values())).isascii():
        flat.values = {_writable(key): value for key, value in flat.values.items()}
        flat.words = {_writable(key): _writable(value) for key, value in flat.words.items()}
    if math.inf in flat.values.values() or -math.inf in flat.values.values():
        _without_made_infinities(flat, complain, text)
    return flat


def _whole(flat: Flat, key: str, value: int, complain: Callable[[str], None]) -> None:
    try:
        flat.values[key] = float(value)
    except OverflowError:
        complain(f"{key}: a number that is too large: left out")


def _writable(text: str) -> str:
    """JSON may escape half a character, which no file can hold: it becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _what(value: object) -> str:
    return {type(None): "null", list: "a list", dict: "a chart", str: "a long text"}.get(
        type(value), type(value).__name__
    )


def _without_made_infinities(flat: Flat, complain: Callable[[str], None], text: str) -> None:
    if "Infinity" in text:
        return
    for key in [key for key, value in flat.values.items() if math.isinf(value)]:
        del flat.values[key]
        complain(f"{key}: a number that is too large: left out")


def step_of(record: Mapping[str, Any], names: Sequence[str]) -> tuple[str, int] | None:
    """The first of the names that the object has, and the step under it; None where it has none, or no whole number."""
    name = next((name for name in names if name in record), None)
    step = None if name is None else whole(record[name])
    return None if name is None or step is None else (name, step)


def whole(value: object) -> int | None:
    """A number of a step; None for anything else, true and false among it."""
    if isinstance(value, bool) or not (isinstance(value, int | float) and abs(value) < LARGEST_STEP):
        return None
    return int(value) if value == int(value) else None


def kind_of(values: Mapping[str, float]) -> Kind:
    """`validation` where nothing but a clock stands beside its keys."""
    keys = values.keys() - CLOCKS
    return "validation" if keys and all(key.startswith(VALIDATION) for key in keys) else "training"
