"""The same figure over dated reports: lines of points that may be joined, where they moved, and what changed there.

Two points are of one line only if everything that decides the work is the same: label, layout, track, settings, prompts
and starting checkpoint, and the machine. What may change along a line is what a history is read for: the framework's
version, its lock, rlaxes itself, Python and the kernel.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from harness.compare.change_points import Change, Searched, change_points, too_few
from harness.compare.gates import GATES
from harness.compare.results import GroupKey
from harness.compare.rows import Row
from harness.compare.statistics import median_interval
from harness.errors import PrerequisiteError
from harness.measure.values import json_number
from harness.report.corrections import is_withdrawn
from harness.report.dated import DatedReport
from harness.report.history_lines import Line, Moved, Point

WORK = ("task", "model", "layout", "track", "adapter", "profile", "seed", "observer", "recipe")
"""The parts of a configuration that decide the work of a cell."""
UNDECIDING = ("profile.time_limit_s", "profile.memory_limit_gb", "recipe.link", "recipe.budget")
"""Of these, what decides none: what a cell may take before it is ended, and where a recipe is told."""
Flat: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Wanted:
    """What a history is asked for; None: any.

    Attributes:
        measures: tags, or tags with a variant (`t_seq_part_seconds[train]`); None: the measures that a verdict may rest
            on (`harness.compare.gates`).
        adapters: labels without a version.
        since: a day, YYYY-MM-DD: lines without a point from then on, and changes before it, are not shown. All points
            are searched.
    """

    measures: frozenset[str] | None = None
    adapters: frozenset[str] | None = None
    layouts: frozenset[str] | None = None
    tracks: frozenset[str] | None = None
    since: str = ""

    def asks(self, row: Row) -> bool:
        """Whether it asks for that row."""
        system = row.adapter.partition("@")[0]
        chosen = ((self.adapters, system), (self.layouts, row.layout), (self.tracks, row.track))
        if any(names is not None and name not in names for names, name in chosen):
            return False
        if self.measures is None:
            return any(gate.measure == row.measure and not (gate.whole and row.variant) for gate in GATES)
        return bool({row.measure, row.name} & self.measures)


@dataclass
class History:
    """Lines by what they are of, then by their first point, then by their figure; `left_out` says what is in none of
    them, and why."""

    lines: list[Line] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def searched(self) -> int:
        """How many of the lines were searched for changes."""
        return sum(line.unsearched is None for line in self.lines)


@dataclass(frozen=True)
class _Found:
    row: Row
    report: DatedReport
    work: Flat
    title: str

    @property
    def place(self) -> tuple[str, ...]:
        row = self.row
        return self.label, row.layout, row.track, row.measure, row.variant, self.machine

    @property
    def label(self) -> str:
        return self.report.label(self.row.adapter)

    @property
    def machine(self) -> str:
        return self.report.machine(*_column(self.row))

    @property
    def settings(self) -> str:
        return hashlib.sha256(json.dumps(self.work, sort_keys=True, default=str).encode()).hexdigest()[:8]


def _column(row: Row) -> GroupKey:
    return row.adapter, row.layout, row.track


def history_of(reports: Sequence[DatedReport], wanted: Wanted) -> History:
    """The lines of what is wanted, searched for changes."""
    history = History()
    found = list(_found(sorted(reports, key=lambda report: report.created), wanted, history.left_out))
    groups: dict[tuple[str, ...], dict[str, list[_Found]]] = {}
    for one in found:
        groups.setdefault(one.place, {}).setdefault(one.settings, []).append(one)
    searched = sum(not too_few(len(group)) for by_settings in groups.values() for group in by_settings.values())
    for by_settings in groups.values():
        before: list[_Found] = []
        for group in by_settings.values():
            history.lines.append(_line(group, before, searched))
            before = group
    history.lines = [_since(line, wanted.since) for line in history.lines if line.points[-1].date >= wanted.since]
    history.lines.sort(key=lambda line: (line.cells, line.points[0].date, line.settings))
    return history


def _since(line: Line, day: str) -> Line:
    return replace(line, moved=tuple(moved for moved in line.moved if moved.date >= day))


def _found(reports: Iterable[DatedReport], wanted: Wanted, left_out: list[str]) -> Iterator[_Found]:
    for report in reports:
        if report.reason:
            left_out.append(f"{report.name}: {report.reason}")
            continue
        reasons: list[str] = []
        for row in report.model.rows:
            if row.state not in {"measured", "not comparable"} or not wanted.asks(row):
                continue
            if reason := _not_joined(report, row):
                reasons.append(reason)
            elif row.value is not None and json_number(row.value) == row.value:
                title = report.model.definitions[row.measure].title
                yield _Found(row, report, work_of(report, row), title)
        left_out += [f"{report.name}: {reason} ({reasons.count(reason)})" for reason in dict.fromkeys(reasons)]


def _not_joined(report: DatedReport, row: Row) -> str | None:
    """Why a figure is in no line; None where it is in one."""
    if is_withdrawn(row, report.corrections):
        return "figures that a correction withdrew"
    return report.unjoinable(*_column(row))


def work_of(report: DatedReport, row: Row) -> Flat:
    """Everything that decides the work of a row's cells, flat, by dotted name; what is null is left out, since it says
    that nothing is set. `bundle` is the hash of prompts, tokenizer and starting checkpoint."""
    config = report.config(*_column(row))
    flat = dict(_flat({key: config[key] for key in WORK if key in config}, ""))
    if flat.get("recipe.name") == "default":
        del flat["recipe.name"]  # reports from before there were recipes say nothing of one
    return {key: value for key, value in flat.items() if key not in UNDECIDING} | report.bundle


def _flat(content: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        elif value is not None:
            yield f"{prefix}{key}", value


def _line(group: Sequence[_Found], before: Sequence[_Found], lines: int) -> Line:
    row, first = group[-1].row, group[0]
    points = tuple(_point(one) for one in group)
    searched, unsearched = Searched(), too_few(len(points))
    try:
        searched = change_points([point.value for point in points], lines)
    except PrerequisiteError as error:
        unsearched = str(error)
    return Line(
        *(first.label, row.layout, row.track, row.measure, row.variant),
        title=group[-1].title,
        unit=row.unit,
        direction=row.direction,
        machine=first.machine,
        settings=first.settings,
        points=points,
        begins=tuple(differences(before[-1].work, first.work)) if before else (),
        moved=tuple(_moved(points, change) for change in searched.changes),
        detectable=searched.detectable,
        unsearched=unsearched,
    )


def _point(found: _Found) -> Point:
    row, report = found.row, found.report
    low, high = row.low, row.high
    if row.state == "not comparable":
        low, high = median_interval([value for value in row.repeats if value is not None]) or (None, None)
    remarks = tuple(one.line() for one in report.corrections if one.touches(row))
    context = report.context(*_column(row))
    return Point(report.name, report.created, row.value or 0.0, low, high, row.n, row.state, context, remarks)


def _moved(points: Sequence[Point], change: Change) -> Moved:
    before, after = points[change.index - 1], points[change.index]
    what = tuple(differences(before.context, after.context))
    return Moved(before.run, after.run, after.date, change.before, change.after, change.ratio, what)


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What differs between two flat mappings, in words, in the order of the names."""
    said = [(key, before.get(key), after.get(key)) for key in sorted(before.keys() | after.keys())]
    return [f"{key}: {_said(was)} -> {_said(now)}" for key, was, now in said if was != now]


def _said(value: Any) -> str:
    return "not said" if value is None else str(value)
