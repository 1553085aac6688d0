"""Cells to rows: the medians of repeats, side by side in the order of their names. Nothing here ranks."""

import math
from collections.abc import Sequence
from dataclasses import replace

from harness.compare.learning import CURVE, LearningCheck, learning_check
from harness.compare.lengths import GUARDED_TOPICS, length_breach
from harness.compare.places import label_at
from harness.compare.results import CellResult, GroupKey, groups_of
from harness.compare.rows import Row, State
from harness.compare.statistics import detectable_change, median_interval, middle, paired_ratio
from harness.measure.api import catalogue
from harness.measure.measure import Measure
from harness.measure.values import Value


def compare_rows(cells: Sequence[CellResult], reference: str = "reference") -> list[Row]:
    """One row for each figure of each adapter, layout and track.

    Rows stand in the order of track, measure (as in the catalogue), adapter, layout. Every group has a row for every
    figure that any group of its track has; where it has no value, the row says why.

    Args:
        cells: every planned cell; the values of one that did not end well count in no median.
        reference: the adapter whose completion lengths and values the others are held against, each against the cells
            of it that ran in the same place.
    """
    cells = [cell if cell.status == "ok" else replace(cell, values=()) for cell in cells]
    groups = groups_of(cells)
    known = {kind.tag: kind for kind in catalogue()}
    rows = []
    for track in sorted({track for _, _, track in groups}):
        in_track = {key: group for key, group in groups.items() if key[2] == track}
        beside = {key: label_at(reference, group[0].place) for key, group in in_track.items()}
        lengths = {key: length_breach(in_track, key, beside[key]) for key in in_track}
        learning = {key: _learning_breach(in_track, key, beside[key]) for key in in_track}
        for example in _figures(cells, track, list(known)):
            kind = known[example.tag]
            found = {key: _row(key, group, example, kind) for key, group in in_track.items()}
            found = {key: _guarded(row, kind, lengths[key], learning[key]) for key, row in found.items()}
            rows += [_beside_reference(row, found.get((beside[key], *key[1:]))) for key, row in found.items()]
    return rows


def _figures(cells: Sequence[CellResult], track: str, order: list[str]) -> list[Value]:
    """One value of each tag and variant that occurs in a track, in the order of the catalogue."""
    examples = {value.name: value for cell in cells if cell.track == track for value in reversed(cell.values)}
    occurring = [*{value.name: None for cell in cells if cell.track == track for value in cell.values}]
    return sorted((examples[name] for name in occurring), key=lambda value: order.index(value.tag))


def _row(key: GroupKey, group: Sequence[CellResult], example: Value, kind: type[Measure]) -> Row:
    adapter, layout, track = key
    found = [cell.find(example.name) for cell in group]
    by_repeat = {cell.repeat: value.value for cell, value in zip(group, found, strict=True) if value is not None}
    repeats = tuple(by_repeat.get(number) for number in range(group[-1].repeat + 1))
    numbers = [number for number in repeats if number is not None]
    state, reason = _state(group, found, example.tag)
    interval = median_interval(numbers)
    low, high = interval if interval and state == "measured" else (None, None)
    return Row(
        adapter=adapter,
        layout=layout,
        track=track,
        measure=example.tag,
        variant=example.variant,
        value=middle(numbers) if numbers else None,
        unit=example.unit,
        direction=kind.direction,
        n=len(numbers),
        low=low,
        high=high,
        state=state,
        reason=reason,
        evidence=next((value.evidence for value in found if value is not None), example.evidence),
        detectable=detectable_change(numbers),
        repeats=repeats,
    )


def _state(group: Sequence[CellResult], found: Sequence[Value | None], tag: str) -> tuple[State, str | None]:
    """The state of a row and what to say beside it."""
    values = [value for value in found if value is not None]
    remarks = [f"repeat {cell.repeat}: {_why_no_value(cell)}" for cell in group if not cell.values]
    remarks += [value.reason for value in values if value.reason]
    said = "; ".join(dict.fromkeys(remarks)) or None
    if known := [value for value in values if value.value is not None]:
        return "as written" if all(value.written for value in known) else "measured", said
    if values:
        return ("absent stage" if all(value.absent for value in values) else "not measured"), said
    if any(cell.values for cell in group):
        return "not measured", _why_no_variant(group, tag)
    ended_badly = [cell for cell in group if cell.status != "not_run"]
    return ("failed" if ended_badly else "not run"), _why_no_value((ended_badly or group)[0])


def _why_no_value(cell: CellResult) -> str:
    if cell.status == "not_run":
        return cell.reason or "it was not run"
    cause = f" ({cell.cause})" if cell.cause else ""
    return f"{cell.status}{cause}: {cell.reason or 'no figure could be read from its ledger'}"


def _why_no_variant(group: Sequence[CellResult], tag: str) -> str:
    """A family of figures has other members here, or none, for a reason that its first member carries."""
    family = [value for cell in group for value in cell.values if value.tag == tag]
    return next((value.reason for value in family if value.value is None and value.reason), "nothing of that kind here")


def learning_checks(cells: Sequence[CellResult], reference: str = "reference") -> list[LearningCheck]:
    """The learning check of every adapter and layout that there is one for, in the order of their names."""
    groups = groups_of([cell for cell in cells if cell.status == "ok"])
    found = [learning_check(groups, key, label_at(reference, group[0].place)) for key, group in groups.items()]
    return [check for check in found if check is not None]


def _learning_breach(groups: dict[GroupKey, list[CellResult]], key: GroupKey, reference: str) -> str | None:
    check = learning_check(groups, key, reference)
    return check.breach if check is not None else None


def _guarded(row: Row, kind: type[Measure], length: str | None, learning: str | None) -> Row:
    """A speed whose work differs keeps its value and loses its interval; so does what the work cost, where it does not
    teach what the reference's does."""
    breaches = [length] if length and kind.topic in GUARDED_TOPICS else []
    breaches += [learning] if learning and (kind.topic in GUARDED_TOPICS or kind.tag == CURVE) else []
    if not breaches or row.state != "measured":
        return row
    return replace(row, state="not comparable", reason="; ".join(breaches), low=None, high=None, detectable=None)


def _beside_reference(row: Row, other: Row | None) -> Row:
    """Add the ratio to the reference, where both were measured and may be held together."""
    if other is None or other.adapter == row.adapter or {row.state, other.state} != {"measured"}:
        return row
    ratio = paired_ratio(row.repeats, other.repeats)
    if ratio is None or not math.isfinite(ratio.value):
        return row
    return replace(row, ratio=ratio.value, ratio_low=ratio.low, ratio_high=ratio.high, pairs=ratio.pairs)
