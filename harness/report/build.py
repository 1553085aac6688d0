"""From a run folder to a report: reads the manifest and the ledgers, measures, compares, draws, and writes."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from harness.audit import check_run
from harness.audit.own import own_findings
from harness.audit.violation import Violation
from harness.compare.api import compare_rows, learning_checks
from harness.compare.controls import foreign_limit
from harness.compare.judge import Judgement, judge_all
from harness.compare.null_test import NullTest
from harness.compare.places import label_at
from harness.measure.api import catalogue
from harness.measure.self_report import SelfReport as CellSelfReport
from harness.report import facts
from harness.report.axes import axes_of
from harness.report.cautions import cautions_of
from harness.report.figures import draw_figures
from harness.report.html import render_html
from harness.report.ingested import describe_ingested
from harness.report.markdown import render_markdown
from harness.report.measured import Cell, Column, Measured, column_of, disturbed, load_manifest, measure_run, observed
from harness.report.model import Definition, FidelityRow, ReportModel, SelfReport

__all__ = ["build_report", "load_manifest", "write_report"]
REFERENCE = "reference"


def build_report(run: Path) -> ReportModel:
    """Measure every cell of a run from its ledger and write `report.json`, `.md`, `.html`, `figures/` and `timeline/`.

    A run that is not finished, or of which nothing went well, gets a report that says so.

    Raises:
        UserError: the folder holds no run.
    """
    manifest = load_manifest(run)
    violations = check_run(run)
    model = _model(manifest, measure_run(run, manifest, violations), violations)
    if manifest.get("ingested"):
        describe_ingested(model, manifest)
    model.cautions = cautions_of(model)
    model.figures = draw_figures(model, run / "figures")
    write_report(model, run)
    return model


def write_report(model: ReportModel, folder: Path) -> None:
    """Write the three files; the figures have to be in `folder`/figures already."""
    content = json.dumps(model.as_dict(), indent=1, allow_nan=False)
    (folder / "report.json").write_text(content + "\n", encoding="utf-8")
    (folder / "report.md").write_text(render_markdown(model), encoding="utf-8")
    (folder / "report.html").write_text(render_html(model, folder / "figures"), encoding="utf-8")


def _model(manifest: Mapping[str, Any], measured: Measured, violations: Sequence[Violation]) -> ReportModel:
    baseline = manifest.get("baseline", REFERENCE)
    rows = compare_rows(measured.results, baseline)
    present = {row.measure for row in rows}
    kinds = [kind for kind in catalogue() if kind.tag in present]
    undisturbed = [cell for cell in manifest["cells"] if not disturbed(cell)]
    adapters = manifest.get("adapters") or {}
    kept = ("name", "title", "version", "sources", "capabilities")
    return ReportModel(
        title=facts.title_of(manifest),
        run_id=manifest["run_id"],
        created=manifest["created"],
        finished=manifest.get("finished"),
        profile=manifest.get("profile") or "unknown",
        baseline=baseline,
        machine=facts.machine_facts(manifest),
        task=facts.task_facts(manifest),
        code=facts.code_facts(manifest),
        adapters={name: {key: said.get(key) for key in kept} for name, said in sorted(adapters.items())},
        cells=[_cell(manifest, cell) for cell in undisturbed],
        rows=rows,
        definitions={
            kind.tag: Definition(kind.tag, kind.title, kind.definition, kind.unit, kind.source, kind.topic, number)
            for number, kind in enumerate(kinds, start=1)
        },
        axes=axes_of(adapters, measured.observed),
        fidelity=_fidelity(undisturbed),
        self_report=[row for column, cells in sorted(measured.self_reports.items()) for row in _beside(column, cells)],
        judgements=_judgements(manifest, measured, baseline),
        null_test=_noisiest(manifest),
        learning=[check.as_dict() for check in learning_checks(measured.results, baseline)],
        verdicts=[verdict.as_dict() for verdict in measured.verdicts],
        violations=[violation.as_dict() for violation in violations],
        findings=[finding.as_dict() for finding in own_findings(measured.cases)],
        completions=measured.completions,
        series=measured.series,
        provenance=facts.provenance_of(manifest),
    )


def _judgements(manifest: Mapping[str, Any], measured: Measured, baseline: str) -> list[Judgement]:
    nulls = {place: NullTest.from_dict(said) for place, said in _null_tests(manifest).items()}
    return judge_all(measured.results, baseline, nulls, foreign_limit(manifest))


def _null_tests(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What the A/A tests showed, by their place; one of a run that went on elsewhere is of no place that is known."""
    if several := manifest.get("null_tests"):
        places = {cell["place"]: several.get(cell["part"]) for cell in manifest["cells"]}
        return {place: said for place, said in places.items() if said}
    said = manifest.get("null_test")
    return {"": said} if said and all(not cell["place"] for cell in manifest["cells"]) else {}


def _noisiest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The A/A test to show of a run; of several, that of the noisiest place, named with it."""
    found = _null_tests(manifest).items()
    shown = [said | {"adapter": label_at(said["adapter"], place)} for place, said in found]
    return max(shown, key=lambda said: math.inf if said["noise"] is None else said["noise"], default={})


def _cell(manifest: Mapping[str, Any], cell: Cell) -> dict[str, Any]:
    kept = {key: value for key, value in cell.items() if key != "fidelity"}
    return kept | {"observed": observed(manifest, cell)}


def _fidelity(cells: Sequence[Cell]) -> list[FidelityRow]:
    """Of each column, the first repeat that read its settings back; a repeat that differs from it says so."""
    rows: list[FidelityRow] = []
    for column in sorted({column_of(cell) for cell in cells}):
        repeats = [cell["fidelity"] for cell in cells if column_of(cell) == column and cell.get("fidelity")]
        for row in repeats[0] if repeats else []:
            others = [o for other in repeats[1:] for o in other if o["setting"] == row["setting"]]
            differs = any((o["in_force"], o["grade"]) != (row["in_force"], row["grade"]) for o in others)
            note = "; ".join(filter(None, [row["note"], "not the same in every repeat" if differs else ""]))
            rows.append(FidelityRow(*column, **row | {"note": note}))
    return rows


def _beside(column: Column, cells: Sequence[Sequence[CellSelfReport]]) -> list[SelfReport]:
    """The median over the repeats of what a framework says and of what we say."""
    return [_median_of(column, [cell[number] for cell in cells]) for number in range(len(cells[0]))]


def _median_of(column: Column, rows: Sequence[CellSelfReport]) -> SelfReport:
    first = rows[0]
    return SelfReport(
        *column,
        key=first.key,
        definition=first.definition,
        theirs=_middle([row.native for row in rows]),
        measure=first.measure,
        ours=_middle([row.ours for row in rows]),
        unit=first.unit or "",
        ratio=_middle([row.ratio for row in rows]),
        differs_because=first.differs_because,
        reason=first.reason,
    )


def _middle(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return median(numbers) if numbers else None
