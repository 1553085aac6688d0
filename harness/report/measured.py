"""What the ledgers of a run give: figures, series, self-reports, observations and completions, cell by cell."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.audit import check_run
from harness.audit.own import cases_of_cell, native_cases
from harness.audit.quantities import Case
from harness.audit.violation import Violation
from harness.compare.drill import DrillVerdict, judge_drill, unjudged
from harness.compare.drill_evidence import Evidence
from harness.compare.places import placed
from harness.compare.results import CellResult
from harness.contract import read_cell
from harness.errors import UserError
from harness.measure.api import MeasureContext, measure_cell, self_report_cell, series_cell, view_of
from harness.measure.self_report import SelfReport
from harness.measure.view import CellView
from harness.report.completions import some_completions
from harness.report.ingested import ingested_cell, series_of
from harness.report.model import Completion
from harness.report.observed import Observation, observe
from harness.report.own import own_cell
from harness.report.perfetto import write_perfetto

Cell = dict[str, Any]
Column = tuple[str, str, str]
UNTRUSTED = ("readable", "sealed_bytes")
"""Rules of `harness.audit` whose breach means that a ledger is not the one that was written."""
BARE = "it ran without the observer, so its ledger holds no figure"


@dataclass
class Measured:
    """What the ledgers gave, in the order of the cells."""

    results: list[CellResult] = field(default_factory=list)
    series: dict[str, Any] = field(default_factory=dict)
    self_reports: dict[Column, list[list[SelfReport]]] = field(default_factory=dict)
    observed: dict[str, list[Observation]] = field(default_factory=dict)
    completions: list[Completion] = field(default_factory=list)
    verdicts: list[DrillVerdict] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)


def load_manifest(run: Path) -> dict[str, Any]:
    """The manifest of a run; its rows say in which place they ran, where there are several.

    Raises:
        UserError: the folder holds no run.
    """
    path = run / "manifest.json"
    if not path.exists():
        raise UserError(f"{run} holds no run: there is no manifest.json in it")
    manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return manifest | {"cells": placed(manifest["cells"])}


def column_of(cell: Cell) -> Column:
    """What the repeats of a cell have in common."""
    return cell["adapter"], cell["layout"], cell["track"]


def observed(manifest: Mapping[str, Any], cell: Cell) -> bool:
    """Whether a cell ran with the probe; one that did not has its wall time only."""
    return bool(_config(manifest, cell).get("observer", True))


def measure_run(run: Path, manifest: Mapping[str, Any], violations: Sequence[Violation]) -> Measured:
    """Measure every cell that ended well from its ledger; write a timeline of the first of each column. A cell that was
    disturbed on purpose is judged, whatever became of it, and stands in no comparison.

    Args:
        violations: those of `check_run`; a cell whose ledger is not the one that was written is not measured.
    """
    measured = Measured()
    for cell in manifest["cells"]:
        found = {key: cell[key] for key in ("adapter", "layout", "track", "repeat", "status", "cause", "reason")}
        found |= {"foreign_cores": cell.get("foreign_cores"), "fidelity": cell.get("fidelity") or ()}
        found |= {"place": cell.get("place", "")}
        if disturbed(cell):
            measured.verdicts.append(_judge(run, manifest, cell, violations))
        elif cell["status"] != "ok":
            measured.results.append(CellResult(**found, values=[]))
        elif not observed(manifest, cell):
            measured.results.append(CellResult(**found | {"status": "not_run", "reason": BARE}, values=[]))
        elif damage := _damage(cell["cell_id"], violations):
            broken = {"status": "failed", "cause": "infrastructure", "reason": damage}
            measured.results.append(CellResult(**found | broken, values=[]))
        elif manifest.get("ingested"):
            ledger = read_cell(run / "ledger", cell["cell_id"])
            measured.results.append(CellResult(**found, values=ingested_cell(ledger, manifest)))
            measured.cases += native_cases(ledger, series_of(manifest))
        else:
            _measure(run, manifest, cell, found, measured)
    return measured


def null_results(run: Path, manifest: Mapping[str, Any]) -> dict[str, list[CellResult]]:
    """The cells of a run's A/A test by their arm, measured; one that did not end well has no values."""
    arms: dict[str, list[CellResult]] = {}
    for cell in manifest.get("null_cells", []):
        found = {key: cell[key] for key in ("adapter", "layout", "track", "repeat", "status", "cause", "reason")}
        found |= {"foreign_cores": cell.get("foreign_cores"), "fidelity": cell.get("fidelity") or ()}
        ended = cell["status"] == "ok" and observed(manifest, cell)
        values = measure_cell(cell_view(run, manifest, cell)) if ended else []
        arms.setdefault(cell["adapter"], []).append(CellResult(**found, values=values))
    return arms


def audit_cases(run: Path) -> list[Case]:
    """What the audit asks about a run.

    Raises:
        UserError: the folder holds no run.
    """
    return measure_run(run, load_manifest(run), check_run(run)).cases


def disturbed(cell: Cell) -> bool:
    """Whether a drill did something to a cell."""
    return bool(cell["fault"] != "none")


def measure_verdicts(run: Path, manifest: Mapping[str, Any]) -> list[DrillVerdict]:
    """The verdicts of a run's drilled cells alone, in the order in which they ran."""
    violations = check_run(run)
    return [_judge(run, manifest, cell, violations) for cell in manifest["cells"] if disturbed(cell)]


def _judge(run: Path, manifest: Mapping[str, Any], cell: Cell, violations: Sequence[Violation]) -> DrillVerdict:
    if cell["status"] == "not_run":
        return unjudged(cell, cell["reason"])
    if not observed(manifest, cell):
        return unjudged(cell, BARE)
    if damage := _damage(cell["cell_id"], violations):
        return unjudged(cell, damage)
    config = _config(manifest, cell)
    twin = next((one for one in manifest["cells"] if one["cell_id"] == cell["twin"] and one["status"] == "ok"), None)
    broken = [v for v in violations if f"{v.where}.".startswith(f"{cell['cell_id']}.")]
    evidence = Evidence(
        row=cell,
        fault=config["fault"],
        checkpoint=config["adapter"]["checkpoint"],
        view=cell_view(run, manifest, cell),
        undisturbed=cell_view(run, manifest, twin) if twin else None,
        violations=[f"{violation.rule}: {violation.detail}" for violation in broken],
    )
    return judge_drill(evidence)


def cell_view(run: Path, manifest: Mapping[str, Any], cell: Cell) -> CellView:
    """A cell of a run as the measures see it."""
    return view_of(read_cell(run / "ledger", cell["cell_id"]), _context(manifest, cell))


def _damage(cell_id: str, violations: Sequence[Violation]) -> str | None:
    for violation in violations:
        if violation.rule in UNTRUSTED and f"{violation.where}.".startswith(f"{cell_id}."):
            return f"its ledger is not the one that was written: {violation.where}, {violation.detail}"
    return None


def _measure(run: Path, manifest: Mapping[str, Any], cell: Cell, found: dict[str, Any], measured: Measured) -> None:
    view = cell_view(run, manifest, cell)
    ledger = view.tables.ledger
    column = column_of(cell)
    result = CellResult(**found, values=measure_cell(view))
    measured.results.append(result)
    measured.series[cell["cell_id"]] = series_cell(view)
    own = own_cell(cell["cell_id"], result, measured.series[cell["cell_id"]], view, manifest)
    measured.cases += cases_of_cell(own)
    measured.self_reports.setdefault(column, []).append(self_report_cell(view))
    if len(measured.self_reports[column]) == 1:
        measured.observed.setdefault(cell["system"], []).extend(observe(view, cell["layout"]))
        measured.completions += some_completions(ledger, *column)
        write_perfetto(ledger, run / "timeline" / f"{cell['cell_id']}.perfetto.json")


def _config(manifest: Mapping[str, Any], cell: Cell) -> dict[str, Any]:
    if manifest.get("ingested"):
        return {}
    config: dict[str, Any] = manifest["configs"][cell["cell_id"].rsplit(".r", 1)[0]]["resolved"]
    return config


def _context(manifest: Mapping[str, Any], cell: Cell) -> MeasureContext:
    config = _config(manifest, cell)
    return MeasureContext(
        task=config["task"],
        warmup_steps=config["task"]["warmup_steps"],
        price=config["price"],
        roofline=(manifest.get("machines") or {}).get(cell.get("machine"), manifest).get("roofline"),
        native_definitions=(manifest.get("adapters") or {}).get(cell["system"], {}).get("native") or [],
        between_failures=(config["adapter"].get("checkpoint") or {}).get("mtbf_s"),
    )
