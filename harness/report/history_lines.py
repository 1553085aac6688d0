"""What a history is made of: points of dated runs, lines of points that may be joined, changes of their level."""

from dataclasses import asdict, dataclass
from typing import Any

from harness.measure.values import json_number

NUMBERS = ("value", "low", "high")


@dataclass(frozen=True)
class Point:
    """A figure of one run.

    Attributes:
        date: when the run began, ISO 8601.
        value, low, high, n: as in its row; a figure that was not comparable with the reference has its interval anew.
        state: of its row.
        context: what may change along a line, by name (`framework`, `lock`, `rlaxes`, `python`, `kernel`).
        corrections: the remarks that were published about it.
    """

    run: str
    date: str
    value: float
    low: float | None
    high: float | None
    n: int
    state: str
    context: dict[str, str]
    corrections: tuple[str, ...] = ()


@dataclass(frozen=True)
class Moved:
    """A change of level between two neighbouring points.

    Attributes:
        what: everything recorded that differs between the two runs, in words; empty where nothing does.
    """

    run_before: str
    run_after: str
    date: str
    before: float
    after: float
    ratio: float | None
    what: tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """Points that may be joined.

    Attributes:
        settings: the first digits of the hash of everything that decides the work.
        begins: what differs from the line before it at the same place; empty for the first.
        moved: the changes of level.
        detectable: the smallest change that would have been found (`harness.compare.change_points.Searched`).
        unsearched: why no change was searched for, or None.
    """

    adapter: str
    layout: str
    track: str
    measure: str
    variant: str
    title: str
    unit: str
    direction: str
    machine: str
    settings: str
    points: tuple[Point, ...]
    begins: tuple[str, ...] = ()
    moved: tuple[Moved, ...] = ()
    detectable: float | None = None
    unsearched: str | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        """What cells it is of, but for their settings."""
        return self.adapter, self.layout, self.track, self.machine

    def as_dict(self) -> dict[str, Any]:
        """For JSON; infinities are strings."""
        points = [asdict(point) | {key: json_number(getattr(point, key)) for key in NUMBERS} for point in self.points]
        return asdict(self) | {"points": points}
