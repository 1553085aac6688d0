"""Series of a foreign run: numbers under one key, from one part of the run, in one kind of block."""

from dataclasses import dataclass

from harness.ingest.reading import Block, Kind

MOST_SERIES = 50_000
"""A log that has more keys than this is no log of metrics: what is beyond is left out, and said."""
MOST_SHAPES = 4_096
"""Sets of keys that are remembered; a log that has more of them is only slower."""


@dataclass(frozen=True, slots=True)
class Series:
    """What a number is a member of: its key as the framework wrote it, the part (`scope`) and the kind of its block."""

    key: str
    scope: str = ""
    kind: Kind = "training"


class SeriesBook:
    """All series of an ingest, each with its number."""

    def __init__(self) -> None:
        self.all: list[Series] = []
        self._numbers: dict[Series, int] = {}
        self._shapes: dict[tuple[str, ...], list[int]] = {}

    def numbers(self, block: Block) -> list[int]:
        """The number of each value of a block, in its order; -1 for a series too many."""
        shape = (block.kind, block.scope, *block.values)
        known = self._shapes.get(shape)
        if known is None:
            if len(self._shapes) >= MOST_SHAPES:
                self._shapes.clear()
            known = self._shapes[shape] = [self.number(Series(key, block.scope, block.kind)) for key in block.values]
        return known

    def number(self, series: Series) -> int:
        """The number of a series; -1 for one too many."""
        found = self._numbers.get(series)
        if found is None:
            if len(self.all) >= MOST_SERIES:
                return -1
            found = self._numbers[series] = len(self.all)
            self.all.append(series)
        return found
