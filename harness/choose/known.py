"""Gathers what is known of every framework: its `adapter.yaml`, the published runs, the published tables."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.choose.authors import reported
from harness.choose.evidence import Finding, Framework
from harness.choose.measured import findings_of
from harness.report.corrections import Correction
from harness.report.dated import DatedReport
from harness.report.model import ReportModel


def known_frameworks(
    specs: Mapping[str, Mapping[str, Any]], running: Sequence[str], reports: Sequence[DatedReport]
) -> list[Framework]:
    """Every framework with all findings.

    Args:
        specs: the content of each `adapter.yaml`, by name.
        running: names of those that have a driver.
        reports: published ones; those that were withdrawn whole show nothing.
    """
    standing = [report for report in reports if not any(_all_of_it(one) for one in report.corrections)]
    findings: dict[str, list[Finding]] = defaultdict(list)
    for report in standing:
        for name, finding in findings_of(report.model, report.corrections):
            findings[name].append(finding)
    for name, finding in reported():
        findings[name].append(finding)
    models = [report.model for report in standing]
    return [
        Framework(name, spec, name in running, findings[name], list(_ran(name, models))) for name, spec in specs.items()
    ]


def _all_of_it(correction: Correction) -> bool:
    return correction.withdrawn and not correction.rows


def _ran(name: str, reports: Sequence[ReportModel]) -> Iterator[str]:
    """A line for each run of the framework: layouts that ended well, those not run and why, how near its task was."""
    for report in reports:
        labels = {label for label, facts in report.adapters.items() if facts.get("name", label) == name}
        cells = [cell for cell in report.cells if cell["adapter"].partition("+")[0] in labels]
        if not cells:
            continue
        well = sorted({cell["layout"].replace("_", " ") for cell in cells if cell["status"] == "ok"})
        not_run = {f"{c['layout'].replace('_', ' ')} not run: {c['reason']}" for c in cells if c["status"] == "not_run"}
        grades = Counter(row.grade for row in report.fidelity if row.adapter in labels)
        near = ", ".join(f"{number} settings {grade}" for grade, number in sorted(grades.items()))
        versions = ", ".join(sorted({str(report.adapters[label].get("version")) for label in labels}))
        parts = [f"ran {', '.join(well)}" if well else "", *sorted(not_run), f"task: {near}" if near else ""]
        yield f"{report.run_id}, {report.profile}, {versions}: {'; '.join(filter(None, parts))}"
