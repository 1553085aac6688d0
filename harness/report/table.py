"""The comparison of one track laid out for printing: topics, families of figures, one cell an adapter and layout."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from harness.compare.rows import Row
from harness.report import format as fmt
from harness.report.judgements import verdict_of
from harness.report.model import Definition, ReportModel

Column = tuple[str, str]
MARKS = {"absent stage": "absent"}
NO_CELL = "no cell of this adapter and layout was planned on this track"


@dataclass(frozen=True)
class Entry:
    """One figure of one column. `note` is the number of its remark below the table, 0 where it has none."""

    text: str
    interval: str = ""
    n: int = 0
    state: str = "measured"
    note: int = 0
    reason: str = ""
    ratio: str = ""
    spread: str = ""
    detectable: str = ""

    @property
    def valued(self) -> bool:
        """Whether there is a number."""
        return self.state in {"measured", "as written", "not comparable"}


@dataclass(frozen=True)
class Line:
    """One variant of a figure over all columns, in one unit."""

    variant: str
    unit: str
    entries: list[Entry]


def unit_beside(title: str, line: Line) -> str:
    """The unit to print beside a title; none where the title says it already, as in `Rollouts/s`."""
    said = line.unit.casefold() in title.casefold().replace(",", "").split()
    return "" if said else line.unit


@dataclass(frozen=True)
class Family:
    """A figure and its variants."""

    definition: Definition
    lines: list[Line]


@dataclass(frozen=True)
class Topic:
    """Figures that answer one question."""

    name: str
    families: list[Family]


@dataclass
class Table:
    """A track's comparison; `notes` are the distinct remarks, in the order in which they are first met; `verdicts` are
    the states of what was judged, by adapter, layout and name of the figure."""

    track: str
    columns: list[Column]
    topics: list[Topic] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    verdicts: dict[tuple[str, str, str], str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many figures it has."""
        return sum(len(topic.families) for topic in self.topics)

    def note(self, reason: str | None) -> int:
        """The number of a remark, from 1; 0 for none."""
        if not reason:
            return 0
        if reason not in self.notes:
            self.notes.append(reason)
        return self.notes.index(reason) + 1


def comparison(model: ReportModel, track: str, measures: Sequence[str] | None = None) -> Table:
    """Lay out a track's rows in the order of the definitions, or those of some measures in the order given; never in
    that of the values."""
    judged = [judgement for judgement in model.judgements if judgement.track == track]
    verdicts = {(one.adapter, one.layout, one.name): verdict_of(one) for one in judged if one.effect is not None}
    table = Table(track, model.columns(track), verdicts=verdicts)
    rows = [row for row in model.rows if row.track == track and (measures is None or row.measure in measures)]
    present = {row.measure for row in rows}
    definitions = [definition for tag, definition in model.definitions.items() if tag in present]
    for name in dict.fromkeys(definition.topic for definition in definitions):
        own = [definition for definition in definitions if definition.topic == name]
        if measures is not None:
            own.sort(key=lambda definition: measures.index(definition.tag))
        table.topics.append(Topic(name, [_family(table, definition, rows) for definition in own]))
    return table


def _family(table: Table, definition: Definition, rows: Sequence[Row]) -> Family:
    own = [row for row in rows if row.measure == definition.tag]
    names = list(dict.fromkeys(row.variant for row in own))
    largest = _largest(own)
    lines = [_line(table, name, [row for row in own if row.variant == name], largest) for name in names]
    return Family(definition, _folded(lines))


def _folded(lines: Sequence[Line]) -> list[Line]:
    """Variants that no column has a value of, for the same reasons, share a line; it names them all."""
    valued = [line for line in lines if any(entry.valued for entry in line.entries)]
    silent: dict[tuple[str, ...], list[Line]] = {}
    for line in lines:
        if line not in valued:
            silent.setdefault(tuple(f"{entry.text} {entry.note}" for entry in line.entries), []).append(line)
    shared = [replace(group[0], variant=", ".join(line.variant for line in group)) for group in silent.values()]
    return valued + shared


def _largest(rows: Sequence[Row]) -> float:
    """The size of the largest finite value; 0 where there is none."""
    sizes = [abs(row.value) for row in rows if row.value is not None and math.isfinite(row.value)]
    return max(sizes, default=0.0)


def _line(table: Table, variant: str, rows: Sequence[Row], family: float) -> Line:
    """One scale for the whole line: that of its largest finite value, or of the family's where all are 0."""
    unit = rows[0].unit
    size = _largest(rows) or family
    divisor, name = fmt.scale(unit, size) if size or unit in fmt.SHARES else (1.0, unit)
    by_column = {(row.adapter, row.layout): row for row in rows}
    return Line(variant, name, [_entry(table, by_column.get(column), divisor) for column in table.columns])


def _entry(table: Table, row: Row | None, divisor: float) -> Entry:
    if row is None:
        return Entry("not planned", state="not run", note=table.note(NO_CELL), reason=NO_CELL)
    note, reason = table.note(row.reason), row.reason or ""
    if row.value is None:
        return Entry(MARKS.get(row.state, row.state), n=row.n, state=row.state, note=note, reason=reason)
    spread = " ".join(fmt.number(v / divisor) if v is not None else fmt.NOTHING for v in row.repeats)
    return Entry(
        fmt.number(row.value / divisor),
        _range(row.low, row.high, divisor),
        row.n,
        row.state,
        note,
        reason,
        ", ".join(filter(None, [_ratio(row), table.verdicts.get((row.adapter, row.layout, row.name))])),
        spread,
        "" if row.detectable is None else f"{fmt.number(100 * row.detectable, 2)} %",
    )


def _range(low: float | None, high: float | None, divisor: float) -> str:
    """The ends of an interval; `± 0` where all repeats agree to the last digit shown."""
    if low is None or high is None:
        return ""
    if fmt.number(low / divisor) == fmt.number(high / divisor):
        return "± 0"
    return f"{fmt.number(low / divisor)} – {fmt.number(high / divisor)}"


def _ratio(row: Row) -> str:
    if row.ratio is None:
        return ""
    bounds = _range(row.ratio_low, row.ratio_high, 1.0)
    shown = bounds if bounds.startswith("±") else f"[{bounds}]"
    return f"{fmt.times(row.ratio)} {shown}" if bounds else fmt.times(row.ratio)
