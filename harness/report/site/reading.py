"""What a folder of published results holds: runs, pages of words, and what could not be read."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.errors import UserError
from harness.report.corrections import Correction, corrections_of, withdrawn_whole
from harness.report.dated import DatedReport, read_report
from harness.report.grades import Evidence, evidence_of_report
from harness.report.model import ReportModel
from harness.report.published_index import INDEX
from harness.report.seals import broken_seals, read_seal, seal_of
from harness.report.site.withdrawn import without_withdrawn

FOLDERS: dict[str, Evidence] = {"public": "author-reported", "simulated": "simulated"}
"""What stands in the place of a profile where nothing was measured; the grade of a page there that has no seal."""


@dataclass(frozen=True)
class Run:
    """A published run.

    Attributes:
        folder: relative to the results, with slashes: `<date>/<profile>/<run>`.
        report: without the values of rows that a correction withdrew, and without the verdicts that rest on them.
        changed: what of it is not as it was published, in words.
    """

    folder: str
    path: Path
    report: DatedReport
    evidence: Evidence
    changed: Sequence[str]

    @property
    def model(self) -> ReportModel:
        """What its page prints."""
        return self.report.model

    @property
    def corrections(self) -> Sequence[Correction]:
        """In the order of their numbers."""
        return self.report.corrections

    @property
    def date(self) -> str:
        """The day on which it began."""
        return self.report.created[:10]

    @property
    def stands(self) -> bool:
        """Whether its figures were measured here, and not all of them taken back."""
        return self.evidence == "measured here" and not withdrawn_whole(self.corrections)


@dataclass(frozen=True)
class Document:
    """A page of words beside the runs, in Markdown: a sweep, drills, an audit. `name` is relative to the results."""

    name: str
    path: Path
    corrections: Sequence[Correction]
    evidence: Evidence

    @property
    def date(self) -> str:
        """The day that its folder names; empty for a page beside the days."""
        return self.name.split("/")[0] if "/" in self.name else ""


@dataclass(frozen=True)
class Broken:
    """A file of the results that could not be used, and why."""

    path: str
    reason: str


@dataclass
class Results:
    """Runs from the newest to the oldest, pages by name; `changed`: what is not as it was published, in words."""

    runs: list[Run] = field(default_factory=list)
    documents: list[Document] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError, UserError)
"""What a damaged report can raise while it is read: no JSON, another schema, a part that is missing or another."""


def read_results(folder: Path) -> Results:
    """Read all that is published.

    Raises:
        UserError: there is no such folder, or nothing in it.
    """
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}: `rlaxes publish RUN` makes one, or name another with --results")
    found = Results(changed=[line.replace(f"{folder}/", "") for line in broken_seals(folder)])
    for path in sorted(folder.glob("*/*/*/report.json")):
        name = path.relative_to(folder)
        try:
            found.runs.append(_run(path, name.parent.as_posix(), found.changed))
        except UNREADABLE as error:
            found.broken.append(broken(name.as_posix(), error, folder))
    for path in sorted(folder.rglob("*.md")):
        if _is_page(path, folder):
            name = path.relative_to(folder)
            try:
                found.documents.append(_document(path, name.as_posix()))
            except UNREADABLE as error:
                found.broken.append(broken(name.as_posix(), error, folder))
    if not (found.runs or found.documents or found.broken):
        raise UserError(f"nothing is published in {folder}: `rlaxes publish RUN` writes a run there")
    found.runs.sort(key=lambda run: run.report.created, reverse=True)
    return found


def broken(name: str, error: Exception, results: Path) -> Broken:
    """One line for a person, without the place of the results on this machine."""
    said = str(error) if isinstance(error, UserError) else f"not as rlaxes writes it: {type(error).__name__}: {error}"
    return Broken(name, " ".join(said.replace(f"{results}/", "").replace(f"{name} ", "it ").split()))


def _run(path: Path, folder: str, changed: Sequence[str]) -> Run:
    if not path.with_name("manifest.json").is_file():
        raise UserError("it has no manifest.json beside it")
    report = read_report(path)
    shown = replace(report, model=without_withdrawn(report.model, report.corrections))
    own = [line for line in changed if line.startswith((f"{folder} ", f"{folder}/"))]
    evidence = _sealed(path.parent) or evidence_of_report({"ingested": report.model.ingested})
    return Run(folder, path.parent, shown, evidence, own)


def _sealed(published: Path) -> Evidence | None:
    return read_seal(published).evidence if seal_of(published).exists() else None


def _is_page(path: Path, folder: Path) -> bool:
    """Every Markdown file but the index, which the site has its own of, and the reports of runs."""
    name = path.relative_to(folder)
    hidden = any(part.startswith(".") for part in name.parts)
    return name.as_posix() != INDEX and not hidden and not path.with_name("report.json").exists()


def _document(path: Path, name: str) -> Document:
    kind = name.split("/")[1] if name.count("/") > 1 else ""
    return Document(name, path, corrections_of(path), _sealed(path) or FOLDERS.get(kind, "measured here"))
