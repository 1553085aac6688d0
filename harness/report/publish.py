"""`rlaxes publish` and `rlaxes correct`: the dated table of a run in `results/<date>/<profile>/<run>/`, written once,
sealed and never changed; and beside it what was found to be wrong with it."""

import json
import shutil
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.report.build import build_report, write_report
from harness.report.corrections import write_correction
from harness.report.grades import Evidence, evidence_of_report
from harness.report.measured import load_manifest
from harness.report.model import ReportModel
from harness.report.published_index import report_in, write_index
from harness.report.scrub import scrub
from harness.report.seals import published_in, write_seal

UNPUBLISHED = ("result", "fidelity", "peak_bytes")
"""Of a cell's row in the manifest: the report has it, or it is of use on the machine only."""


def publish_run(run: Path, results: Path) -> Path:
    """Write a finished run's report, manifest and figures, without anything that names the machine or its user.

    Returns:
        The new folder.

    Raises:
        UserError: the run has not ended, or it is published already.
    """
    manifest = load_manifest(run)
    if not manifest.get("finished"):
        raise UserError(f"run {manifest['run_id']} has not ended; the same command goes on where it stopped")
    target: Path = results / manifest["created"][:10] / manifest["profile"] / manifest["run_id"]
    if target.exists():
        raise UserError(
            f"{target} is published already, and a published table is never changed: run again for a new one"
        )
    model = _public(build_report(run))
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    _write(model, scrub(_trimmed(manifest)), run, partial)
    write_seal(partial, evidence_of_report(model.as_dict()))
    partial.rename(target)
    write_index(results)
    return target


def publish_page(page: Path, evidence: Evidence, results: Path) -> Path:
    """Seal a page (or a file of data beside it) that was written into `results/<date>/<folder>/` by hand or by a tool.

    Returns:
        Its seal.

    Raises:
        UserError: it lies elsewhere, or it is published already.
    """
    if not page.is_file() or not page.resolve().parent.parent.parent == results.resolve():
        raise UserError(f"{page} is no file in {results}/<date>/<folder>/")
    seal = write_seal(page, evidence)
    write_index(results)
    return seal


def correct(
    published: Path, results: Path, *, what: str, why: str, by: str | None, rows: tuple[str, ...], withdrawn: bool
) -> Path:
    """Put a dated correction beside a published run or page, and name it in the index.

    Args:
        published: the run's folder or the page, as a path or by its name.
        rows: `harness.report.corrections.Correction.rows`.

    Returns:
        The new file.

    Raises:
        UserError: nothing of that name is published, or the correction lacks something.
    """
    target = _find(published, results)
    report = report_in(target) if target.is_dir() else None
    path = write_correction(target, what=what, why=why, by=by, rows=rows, withdrawn=withdrawn, report=report)
    write_index(results)
    return path


def _find(published: Path, results: Path) -> Path:
    everything = published_in(results)
    found = [path for path in everything if path.resolve() == published.resolve() or path.name == str(published)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UserError(f"{published} is several things: {', '.join(map(str, found))}; write the path of one")
    raise UserError(f"nothing in {results} is called {published}; `{results}/README.md` lists what is published")


def _public(model: ReportModel) -> ReportModel:
    """Without the series, which the figures show and the run keeps, and without names of the machine."""
    content: dict[str, Any] = model.as_dict() | {"series": {}}
    return ReportModel.from_dict(scrub(content))


def _trimmed(manifest: dict[str, Any]) -> dict[str, Any]:
    def row(cell: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in cell.items() if key not in UNPUBLISHED}

    tables = [name for name in ("null_cells", "cells", "redone") if name in manifest]
    return manifest | {name: [row(cell) for cell in manifest[name]] for name in tables}


def _write(model: ReportModel, manifest: dict[str, Any], run: Path, folder: Path) -> None:
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    (folder / "figures").mkdir()
    for figure in model.figures:
        if figure.reason is None:
            shutil.copyfile(run / "figures" / f"{figure.name}.svg", folder / "figures" / f"{figure.name}.svg")
    write_report(model, folder)
