"""The content of a report as plain data: everything that the renderers print, and nothing that they have to compute."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Self

from harness.compare.judgement import Judgement
from harness.compare.rows import Row
from harness.errors import UserError

REPORT_SCHEMA = 1
ROW_NUMBERS = ("value", "low", "high", "ratio", "ratio_low", "ratio_high", "detectable")
Grade = Literal["exact", "approximated", "unsupported"]


@dataclass(frozen=True)
class Definition:
    """What a figure means; `number` is its footnote, from 1."""

    tag: str
    title: str
    definition: str
    unit: str
    source: str
    topic: str
    number: int


@dataclass(frozen=True)
class Axis:
    """One architectural axis of one adapter: what is declared (source, version, date) beside what the ledger shows.

    Attributes:
        declared: None where the adapter declares nothing.
        values: the same in values of the axis's vocabulary (`harness.contract.axes`).
        measured: None where nothing was measured, with `reason`.
        evidence: the ledger table and columns behind `measured`.
        differs: the two contradict each other; both are shown.
        stale: why the declared value may no longer hold, or None.
    """

    adapter: str
    axis: str
    declared: str | None
    source: str | None
    version: str | None
    date: str | None
    measured: str | None
    evidence: str
    reason: str | None
    differs: bool
    stale: str | None
    values: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class FidelityRow:
    """What one task setting became in one adapter and layout (MEASURES.md, "Comparing")."""

    adapter: str
    layout: str
    track: str
    setting: str
    asked: Any
    in_force: Any
    grade: Grade
    note: str


@dataclass(frozen=True)
class SelfReport:
    """A figure that a framework prints of itself beside ours. `ours` is in `unit`; `theirs` is as they print it."""

    adapter: str
    layout: str
    track: str
    key: str
    definition: str
    theirs: float | None
    measure: str | None
    ours: float | None
    unit: str
    ratio: float | None
    differs_because: str
    reason: str | None


@dataclass(frozen=True)
class Caution:
    """Something to distrust: where it is, and what it does to the figures. Ordered: the worst first."""

    about: str
    text: str


@dataclass(frozen=True)
class Figure:
    """A picture in `figures/<name>.svg` and `.png`, or the reason why it was not drawn. `alt` says it in words."""

    name: str
    title: str
    caption: str
    alt: str
    reason: str | None


@dataclass(frozen=True)
class Completion:
    """A completion as the policy wrote it: untrusted text."""

    adapter: str
    layout: str
    track: str
    sample_id: str
    policy_version: int | None
    reward: float | None
    stop_reason: str
    text: str


@dataclass
class ReportModel:
    """A whole report. `baseline` is the system that the others are held against. `cells` and `violations` are as in
    `manifest.json` and `rlaxes check --json`; `machine`, `task` and `code` are facts to print, in their order;
    `provenance` is what a repetition needs. `verdicts` are those of the cells that were disturbed on purpose
    (`harness.compare.drill.DrillVerdict.as_dict`), which stand nowhere else; `judgements` hold each system against its
    baseline; `null_test` is the A/A test of the machine (`harness.compare.null_test.NullTest.as_dict`); `learning` are
    the learning checks (`harness.compare.learning.LearningCheck.as_dict`); `findings` are those of the audit's rules
    over the run's own figures, as in `rlaxes audit --json`; `ingested` is what is known of a run that was recorded
    elsewhere, in the words of its manifest (`harness.ingest.run_folder`)."""

    title: str
    run_id: str
    created: str
    finished: str | None
    profile: str
    baseline: str = "reference"
    machine: dict[str, Any] = field(default_factory=dict)
    task: dict[str, Any] = field(default_factory=dict)
    code: dict[str, Any] = field(default_factory=dict)
    adapters: dict[str, dict[str, Any]] = field(default_factory=dict)
    cells: list[dict[str, Any]] = field(default_factory=list)
    cautions: list[Caution] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    definitions: dict[str, Definition] = field(default_factory=dict)
    axes: list[Axis] = field(default_factory=list)
    fidelity: list[FidelityRow] = field(default_factory=list)
    self_report: list[SelfReport] = field(default_factory=list)
    judgements: list[Judgement] = field(default_factory=list)
    null_test: dict[str, Any] = field(default_factory=dict)
    learning: list[dict[str, Any]] = field(default_factory=list)
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    violations: list[dict[str, str]] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    completions: list[Completion] = field(default_factory=list)
    series: dict[str, Any] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    provenance: dict[str, Any] = field(default_factory=dict)
    ingested: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For report.json: strict JSON, infinite numbers as strings, with the schema version.

        `rows` have the keys of `harness.compare.rows.JSON_KEYS` and no other; `records` are the same rows whole.
        """
        plain = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        whole = {"rows": [row.as_dict() for row in self.rows], "records": [row.as_record() for row in self.rows]}
        whole |= {"judgements": [judgement.as_dict() for judgement in self.judgements]}
        return {"schema": REPORT_SCHEMA, **plain, **whole}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """A report read back. What one that was published before this version does not tell stays empty.

        Raises:
            UserError: it has another schema.
        """
        if content.get("schema") != REPORT_SCHEMA:
            raise UserError(f"this report has schema {content.get('schema')}, this rlaxes reads {REPORT_SCHEMA}")
        given: dict[str, Any] = {f.name: content[f.name] for f in fields(cls) if f.name in content}
        lists = {"cautions": Caution, "axes": Axis, "fidelity": FidelityRow, "self_report": SelfReport}
        lists |= {"completions": Completion, "figures": Figure}
        given |= {name: [kind(**item) for item in content[name]] for name, kind in lists.items()}
        given["judgements"] = [Judgement.from_dict(item) for item in content.get("judgements", [])]
        given["rows"] = [_row(item) for item in content["records"]]
        given["definitions"] = {tag: Definition(**item) for tag, item in content["definitions"].items()}
        return cls(**given)

    def columns(self, track: str) -> list[tuple[str, str]]:
        """The (adapter, layout) pairs that a track has, in the order of their names."""
        return sorted({(cell["adapter"], cell["layout"]) for cell in self.cells if cell["track"] == track})

    @property
    def tracks(self) -> list[str]:
        """The tracks of the run, by name."""
        return sorted({cell["track"] for cell in self.cells})

    @property
    def repeats(self) -> int:
        """How often each cell was planned."""
        return max((cell["repeat"] + 1 for cell in self.cells), default=0)

    @property
    def names(self) -> list[str]:
        """The adapters of the run, by name."""
        return sorted({cell["adapter"] for cell in self.cells} | set(self.adapters))


def _plain(content: Any) -> Any:
    """Dataclasses to dictionaries, keeping what is plain already."""
    if isinstance(content, list):
        return [_plain(item) for item in content]
    if isinstance(content, Definition | Axis | FidelityRow | SelfReport | Caution | Figure | Completion):
        return asdict(content)
    if isinstance(content, dict):
        return {key: _plain(value) for key, value in content.items()}
    return content


def _row(item: dict[str, Any]) -> Row:
    numbers = {name: _number(item[name]) for name in ROW_NUMBERS}
    return Row(**item | numbers | {"repeats": tuple(_number(value) for value in item["repeats"])})


def _number(value: float | str | None) -> float | None:
    return None if value is None else float(value)


def variants(rows: Iterable[Row], measure: str) -> list[str]:
    """The variants of a measure in the order in which they first appear."""
    return list(dict.fromkeys(row.variant for row in rows if row.measure == measure))
