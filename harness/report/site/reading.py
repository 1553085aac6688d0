"""What a folder of published results holds: runs, pages of words, and what could not be read."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.compare.rows import Row
from harness.errors import UserError
from harness.report.corrections import Correction, corrections_of
from harness.report.grades import Evidence, evidence_of_report
from harness.report.model import ReportModel

PUBLIC = "public"
"""The folder, in the place of a profile, of numbers that others published."""


@dataclass(frozen=True)
class Run:
    """A published run.

    Attributes:
        folder: relative to the results, with slashes: `<date>/<profile>/<run>`.
        model: the report without the values of rows that a correction withdrew.
        content: `report.json` as it is.
        manifest: empty where the run has none.
    """

    folder: str
    path: Path
    model: ReportModel
    content: dict[str, Any]
    manifest: dict[str, Any]
    corrections: list[Correction]
    evidence: Evidence

    @property
    def date(self) -> str:
        """The day on which it began."""
        return self.model.created[:10]


@dataclass(frozen=True)
class Document:
    """A page of words beside the runs, in Markdown: a sweep, drills, an audit. `name` is relative to the results."""

    name: str
    path: Path
    corrections: list[Correction]

    @property
    def date(self) -> str:
        """The day that its folder names; empty for a page beside the days."""
        return self.name.split("/")[0] if "/" in self.name else ""

    @property
    def kind(self) -> str:
        """The folder that it lies in: a profile, `simulated` or `public`; empty for a page beside the days."""
        parts = self.name.split("/")
        return parts[1] if len(parts) > 2 else ""


@dataclass(frozen=True)
class Broken:
    """A file of the results that could not be used, and why."""

    path: str
    reason: str


@dataclass
class Results:
    """Runs from the newest to the oldest, pages by name."""

    runs: list[Run] = field(default_factory=list)
    documents: list[Document] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)


def read_results(folder: Path) -> Results:
    """Read all that is published.

    Raises:
        UserError: there is no such folder, or nothing in it.
    """
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}: `rlaxes publish RUN` makes one, or name another with --results")
    found = Results()
    _read_documents(folder, found)
    for path in sorted(folder.glob("*/*/*/report.json")):
        try:
            found.runs.append(_run(path, folder))
        except UNREADABLE as error:
            found.broken.append(Broken(path.relative_to(folder).as_posix(), why(error)))
    if not (found.runs or found.documents or found.broken):
        raise UserError(f"nothing is published in {folder}: `rlaxes publish RUN` writes a run there")
    found.runs.sort(key=lambda run: run.model.created, reverse=True)
    return found


UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError, UserError)
"""What a damaged report can raise while it is read: no JSON, another schema, a part that is missing or another."""


def why(error: Exception) -> str:
    """One line for a person."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, json.JSONDecodeError):
        return f"no JSON: {error}"
    return f"not as rlaxes writes it: {type(error).__name__}: {error}"


def _run(path: Path, results: Path) -> Run:
    content = json.loads(path.read_text(encoding="utf-8"))
    manifest = path.with_name("manifest.json")
    said = json.loads(manifest.read_text(encoding="utf-8")) if manifest.is_file() else {}
    corrections = corrections_of(path.parent)
    model = ReportModel.from_dict(content)
    model.rows = [_without_withdrawn(row, corrections) for row in model.rows]
    folder = path.parent.relative_to(results).as_posix()
    return Run(folder, path.parent, model, content, said, corrections, evidence_of_report(content))


def _without_withdrawn(row: Row, corrections: Sequence[Correction]) -> Row:
    """A value that was taken back is printed nowhere; `report.html` has it as it was published."""
    for correction in corrections:
        if correction.withdrawn and correction.touches(row):
            nothing = {"value": None, "low": None, "high": None, "ratio": None, "detectable": None, "repeats": ()}
            return replace(row, **nothing, n=0, state="not measured", reason=f"withdrawn on {correction.line()}")  # type: ignore[arg-type]
    return row


def _read_documents(folder: Path, found: Results) -> None:
    """Every Markdown file but the index, which the site has its own of, and the reports of runs."""
    for path in sorted(folder.rglob("*.md")):
        name = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in name.parts)
        if name.as_posix() == "README.md" or hidden or path.with_name("report.json").exists():
            continue
        try:
            found.documents.append(Document(name.as_posix(), path, corrections_of(path)))
        except UserError as error:
            found.broken.append(Broken(name.as_posix(), str(error)))
