"""`rlaxes publish`: the dated table of a run in `results/<date>/<profile>/<run>/`, written once and never changed."""

import json
import shutil
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.report.build import build_report, write_report
from harness.report.markup import escape
from harness.report.measured import load_manifest
from harness.report.model import ReportModel
from harness.report.scrub import scrub
from harness.report.views import counts

INDEX_HEAD = """# Published results

One line a run, in the order of publication. A table is never changed after it was published; a newer run is a new line.
Nothing is ranked.

| date | profile | task | systems | cells | table |
| --- | --- | --- | --- | --- | --- |
"""
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
    partial.rename(target)
    _index(results, target, model)
    return target


def _public(model: ReportModel) -> ReportModel:
    """Without the series, which the figures show and the run keeps, and without names of the machine."""
    content: dict[str, Any] = model.as_dict() | {"series": {}}
    return ReportModel.from_dict(scrub(content))


def _trimmed(manifest: dict[str, Any]) -> dict[str, Any]:
    cells = [{key: cell[key] for key in cell if key not in UNPUBLISHED} for cell in manifest["cells"]]
    return manifest | {"cells": cells}


def _write(model: ReportModel, manifest: dict[str, Any], run: Path, folder: Path) -> None:
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    (folder / "figures").mkdir()
    for figure in model.figures:
        if figure.reason is None:
            shutil.copyfile(run / "figures" / f"{figure.name}.svg", folder / "figures" / f"{figure.name}.svg")
    write_report(model, folder)


def _index(results: Path, target: Path, model: ReportModel) -> None:
    index = results / "README.md"
    if not index.exists():
        index.write_text(INDEX_HEAD, encoding="utf-8")
    systems = ", ".join(f"{name} {said['version']}" for name, said in sorted(model.adapters.items()))
    named = [model.task[key] for key in ("task", "model", "track") if key in model.task]
    task = ", ".join(named) or "recorded elsewhere"
    link = f"[{model.run_id}]({target.relative_to(results).as_posix()}/report.md)"
    cells = [model.created[:10], model.profile, escape(task), escape(systems), counts(model), link]
    with index.open("a", encoding="utf-8") as file:
        file.write("| " + " | ".join(cells) + " |\n")
