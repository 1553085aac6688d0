"""A run that was recorded elsewhere, in a report: its figures, whose word they are, and all that its logs hold."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.contract import CellLedger, NativeSeries
from harness.measure.ingested import ingested_values
from harness.measure.values import Value
from harness.report import format as fmt
from harness.report.model import Caution, ReportModel

LEAD = (
    "This run was not measured here: its framework wrote these numbers elsewhere. Where a number of its own is by "
    "definition a figure of ours it stands above, as written; every other figure has no value. All that it wrote:"
)
KEPT = ("framework", "version", "files", "steps", "warmup_steps", "series", "unknown_keys", "seams", "warnings")


def ingested_cell(ledger: CellLedger, manifest: Mapping[str, Any]) -> list[Value]:
    """Every figure of the one cell that the run has."""
    return ingested_values(ledger, series_of(manifest), manifest["warmup_steps"])


def series_of(content: Mapping[str, Any]) -> list[NativeSeries]:
    """The series that a manifest, or a report of it, describes."""
    return [NativeSeries.from_dict(entry) for entry in content["series"]]


def describe_ingested(model: ReportModel, manifest: Mapping[str, Any]) -> None:
    """Say in a report what is known of the run: whose it is, from which files, and what they hold."""
    name, files = _named(manifest), manifest["files"]
    model.title = f"{name}, read from {_counted(len(files), 'file')}"
    model.ingested = {key: manifest[key] for key in KEPT}
    model.task = {"framework": name, "steps": f"{manifest['steps']} training steps, as the files tell"}
    model.task |= {"files": "; ".join(file["name"] for file in files)}
    model.code = {key: model.code[key] for key in ("began", "run", "rlaxes")}
    model.code["read"] = model.code.pop("began")
    model.provenance |= {"files": files, "settings": manifest["settings"]}


def _named(content: Mapping[str, Any]) -> str:
    return f"{content['framework']} {content['version'] or '(version not told)'}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


@dataclass(frozen=True)
class SeriesLine:
    """A series as a line of a table: `is_ours` says which figure of ours it is, or why it is none."""

    key: str
    speaks_of: str
    unit: str
    n: str
    first: str
    last: str
    is_ours: str


def series_lines(model: ReportModel) -> Iterator[SeriesLine]:
    """All series of a run, in the order in which they were met."""
    for one in series_of(model.ingested) if model.ingested else ():
        yield SeriesLine(
            key=one.key,
            speaks_of=", ".join(filter(None, (one.part, one.scope, one.of))),
            unit=one.unit or "",
            n=str(one.n),
            first=f"{one.first:.6g}",
            last=f"{one.last:.6g}",
            is_ours=_is_ours(one),
        )


def _is_ours(one: NativeSeries) -> str:
    if not one.known:
        return "unknown key"
    if one.measure is None:
        return "no figure of ours"
    return f"is {one.measure}" if one.same else f"not {one.measure}: {one.differs_because}"


def ingested_cautions(model: ReportModel) -> Iterator[Caution]:
    """What makes its numbers mean less than they seem."""
    if not (told := model.ingested):
        return
    yield Caution(told["framework"], "recorded elsewhere: every figure here is the framework's own word.")
    for seam in told["seams"]:
        yield Caution("seam", seam["said"])
    if told["unknown_keys"]:
        keys = ", ".join(told["unknown_keys"])
        yield Caution("keys", f"{_counted(len(told['unknown_keys']), 'key')} that the key map does not have: {keys}.")
    for warning in told["warnings"]:
        yield Caution("reading", warning)
    if not told["warmup_steps"]:
        yield Caution("warm-up", "no step was dropped (ingest --warmup-steps): the first ones are in every figure.")


def spoken(model: ReportModel) -> Mapping[str, Any]:
    """The words of the section that both renderers print; none for a run of ours."""
    if not (told := model.ingested):
        return {}
    files = [f"{file['name']} ({file['shape']}, {fmt.quantity(file['bytes'], 'bytes')})" for file in told["files"]]
    return {"lead": LEAD, "files": files, "seams": [seam["said"] for seam in told["seams"]]}
