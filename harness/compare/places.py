"""Where cells ran. Only what ran in one place is paired; two places meet through the reference that ran in both.

A place is a machine, and where one machine ran several parts of a split plan, the part as well: each part has a
reference of its own beside it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
Place = tuple[str | None, str | None]


def placed(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows of a manifest with their `place` in words, and `adapter` as a label that says it.

    The label stays as it is where all ran in one place, which is every run that one machine did alone, and where the
    rows have a place already.
    """
    if any("place" in row for row in rows):
        return [dict(row) for row in rows]
    places = list(dict.fromkeys(_place(row) for row in rows if row.get("machine")))
    words = {place: _words(place, places) for place in places} if len(places) > 1 else {}
    named = ((row, words.get(_place(row), "")) for row in rows)
    return [{**row, "place": place, "adapter": label_at(row["adapter"], place)} for row, place in named]


def label_at(name: str, place: str) -> str:
    """What the cells of a system in a place are called."""
    return f"{name} {place}" if place else name


def _place(row: Row) -> Place:
    return row.get("machine"), row.get("part")


def _words(place: Place, places: Sequence[Place]) -> str:
    machine, part = place
    shared = sum(other == machine for other, _ in places) > 1
    return f"on {machine}, part {part}" if shared else f"on {machine}"
