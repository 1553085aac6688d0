"""The length guard: on natural lengths two loops are comparable in speed only where they wrote equally long texts."""

from collections.abc import Sequence

from harness.compare.results import CellResult, GroupKey
from harness.compare.statistics import middle

TOLERANCE = 0.05
GUARDED_TRACK = "free"
GUARDED_TOPICS = ("throughput", "stages", "cost")
LENGTHS = {"completion_length": "mean", "completion_length_p95": "p95"}


def _median_length(cells: Sequence[CellResult], tag: str) -> float | None:
    found = [cell.find(tag) for cell in cells]
    numbers = [value.value for value in found if value is not None and value.value is not None]
    return middle(numbers) if numbers else None


def reference_cells(groups: dict[GroupKey, list[CellResult]], key: GroupKey, reference: str) -> list[CellResult]:
    """The reference's repeats in the same layout, or in its first one where it has no such layout."""
    _, layout, track = key
    same = groups.get((reference, layout, track))
    others = [cells for (adapter, _, where), cells in groups.items() if (adapter, where) == (reference, track)]
    return same or (others[0] if others else [])


def length_breach(groups: dict[GroupKey, list[CellResult]], key: GroupKey, reference: str) -> str | None:
    """Why the speeds of a group may not be held against the reference's, or None where they may.

    A difference of the mean or the 95th percentile of the completion length by more than `TOLERANCE` of the reference's
    is such a reason (module step 12.2.5; DESIGN of the two tracks). Lengths that were not measured are none.
    """
    adapter, _, track = key
    if track != GUARDED_TRACK or adapter == reference:
        return None
    for tag, name in LENGTHS.items():
        own = _median_length(groups[key], tag)
        its = _median_length(reference_cells(groups, key, reference), tag)
        if own is not None and its and abs(own - its) > TOLERANCE * its:
            return (
                f"its {name} completion length is {own:.4g} tokens, that of {reference} {its:.4g}: "
                f"{own / its - 1:+.1%}, past the {TOLERANCE:.0%} within which speeds compare (see track fixed_length)"
            )
    return None


def length_difference(cells: Sequence[CellResult], others: Sequence[CellResult]) -> float:
    """By how much two groups differ in their mean completion length, as a share of the second's; 0 where not measured.

    Up to `TOLERANCE` speeds compare, but a time that differs by no more than the work does says nothing of the system.
    """
    own, its = _median_length(cells, "completion_length"), _median_length(others, "completion_length")
    return abs(own / its - 1) if own is not None and its else 0.0
