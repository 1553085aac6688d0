"""What a reader of foreign logs gets and gives: the words that all of `harness.ingest` shares."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Literal, Protocol

Kind = Literal["training", "validation", "summary", "config"]
Warn = Callable[[int, str], None]
"""Takes a line number (from 1; 0 for the file as a whole) and one sentence: what was met and what was done about it."""
HEAD_BYTES = 256 * 1024
"""How much of a file a reader may look at to recognise it."""
UNKNOWN = "unknown"
"""The framework of a file whose format is known and whose keys tell no framework."""


@dataclass(frozen=True, slots=True)
class Block:
    """All values that one place of a file gives for one step.

    Attributes:
        step: the framework's own number of it, as written; None where the place names none.
        line: where it begins, from 1.
        kind: what it speaks of; `summary` is of the whole run (a last entry, a table under it), `config` are settings.
        values: by the framework's own key, as written; a value that is not a number is left out (and warned of), NaN
            and infinities are kept.
        scope: what else tells it from another block of the same step (`orchestrator`, a rank); empty where nothing.
        words: settings and labels that are no numbers, by key.
    """

    step: int | None
    line: int
    kind: Kind
    values: dict[str, float]
    scope: str = ""
    words: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Recognised:
    """Whose log a file is. `version` is None where the content does not tell it; `why` quotes what gave it away. Where
    the name of a file says what its content does not (a step), `reads` is the reader that knows it. Of a file that has
    one step of many, `part_of` is its name without the step: all files of the run have it in common."""

    framework: str
    shape: str
    version: str | None
    why: str
    reads: "Reader | None" = None
    part_of: str = ""


class Reader(Protocol):
    """One shape of log of one framework (a console log, a trainer state, an event file)."""

    framework: str
    shape: str

    def recognises(self, head: bytes, name: str) -> Recognised | None:
        """Whether this is such a file, from its first `HEAD_BYTES` and its name. Never raises on rubbish."""
        ...

    def blocks(self, stream: BinaryIO, warn: Warn) -> Iterator[Block]:
        """Its blocks in file order, read as a stream: memory does not grow with the file. Never raises on rubbish: what
        cannot be read is warned of and passed over."""
        ...
