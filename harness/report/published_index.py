"""`results/README.md`: everything that is published, by grade of evidence, each with its corrections. Written anew by
every publication and correction, from what lies below `results/`."""

import json
from collections.abc import Sequence
from pathlib import Path

from harness.errors import UserError
from harness.report.corrections import Correction, corrections_of
from harness.report.grades import EVIDENCE, MEANINGS, Evidence
from harness.report.markup import escape, grid
from harness.report.model import ReportModel
from harness.report.seals import broken_seals, published_in, read_seal
from harness.report.views import counts

INDEX = "README.md"
HEAD = """# Published results

What is published is never changed: every file is sealed (`sha256sum -c SEAL` in its folder), and what turns out to be
wrong gets a dated correction beside it: [How is a result published, and what if it was wrong?](../docs/publish.md)
Under one heading stands what is of one grade of evidence, by date. Nothing is ranked.

`rlaxes publish` and `rlaxes correct` write this page.
"""
RUNS = ("date", "profile", "task", "systems", "cells", "table", "corrections")
PAGES = ("date", "folder", "page", "corrections")


def report_in(run: Path) -> ReportModel:
    """The report of a published run.

    Raises:
        UserError: there is none that this rlaxes reads.
    """
    path = run / "report.json"
    try:
        return ReportModel.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UserError) as error:
        raise UserError(f"{path} is no report that rlaxes published: {error!r}") from error


def index_page(results: Path) -> str:
    """The page for what lies below `results` now."""
    found = {published: read_seal(published).evidence for published in published_in(results)}
    lines = [HEAD]
    for evidence in EVIDENCE:
        own = [published for published, grade in found.items() if grade == evidence]
        lines += _section(results, evidence, own) if own else []
    return "\n".join(lines).rstrip("\n") + "\n"


def write_index(results: Path) -> None:
    """Write it."""
    (results / INDEX).write_text(index_page(results), encoding="utf-8")


def complaints(results: Path) -> list[str]:
    """One line for everything in `results` that is not as it was published, or that the index does not name; empty
    where all is well."""
    broken = broken_seals(results)
    index = results / INDEX
    if not broken and (not index.is_file() or index.read_text(encoding="utf-8") != index_page(results)):
        broken.append(f"{index} is not what lies in {results}; the next `rlaxes publish` or `rlaxes correct` writes it")
    return broken


def _section(results: Path, evidence: Evidence, published: Sequence[Path]) -> list[str]:
    runs = [path for path in published if path.is_dir()]
    pages = [path for path in published if not path.is_dir() and path.suffix == ".md"]
    lines = [f"## {evidence.capitalize()}", "", f"{MEANINGS[evidence].capitalize()}.", ""]
    lines += grid(RUNS, [_run(results, path) for path in runs]) if runs else []
    lines += grid(PAGES, [_page(results, path) for path in pages]) if pages else []
    return lines


def _run(results: Path, run: Path) -> list[str]:
    model = report_in(run)
    return [
        model.created[:10],
        escape(model.profile),
        escape(task_of(model)),
        escape(systems_of(model)),
        escape(counts(model)),
        f"[{run.name}]({_link(results, run / 'report.md')})",
        _corrections(results, run),
    ]


def task_of(model: ReportModel) -> str:
    """What ran, in a few words."""
    named = [model.task[key] for key in ("task", "model", "track") if key in model.task]
    return ", ".join(named) or "recorded elsewhere"


def systems_of(model: ReportModel) -> str:
    """The systems by name, with their versions, and whether somebody tuned them."""
    versions = {name: said["version"] or "(version not told)" for name, said in sorted(model.adapters.items())}
    return ", ".join(f"{name} {version}{_tuned(model, name)}" for name, version in versions.items())


def _tuned(model: ReportModel, name: str) -> str:
    """Says that somebody tuned a system; the report says who."""
    configs = model.provenance.get("configs") or {}
    recipes = [said.get("recipe") or {} for place, said in configs.items() if place.rsplit(".", 2)[0] == name]
    return " (tuned)" if any(recipe.get("by") for recipe in recipes) else ""


def _page(results: Path, page: Path) -> list[str]:
    title = next((line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("# ")), page.name)
    return [
        read_seal(page).date,
        page.parent.name,
        f"[{escape(title.removeprefix('# '))}]({_link(results, page)})",
        _corrections(results, page),
    ]


def _corrections(results: Path, published: Path) -> str:
    return "<br>".join(_correction(results, published, correction) for correction in corrections_of(published))


def _correction(results: Path, published: Path, correction: Correction) -> str:
    verb = "withdrawn" if correction.withdrawn else "corrected"
    path = published.with_name(f"{published.name}.correction-{correction.number}.yaml")
    return f"[{correction.date}, {verb}]({_link(results, path)}): {escape(correction.what)}"


def _link(results: Path, path: Path) -> str:
    return path.relative_to(results).as_posix()
