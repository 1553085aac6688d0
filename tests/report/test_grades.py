"""Grades of evidence: told by what a report is, never by who publishes it."""

import json
from pathlib import Path

import pytest

from harness.report.grades import EVIDENCE, MEANINGS, Evidence, evidence_of_report
from tests.report.reports import report

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = sorted((ROOT / "results").glob("*/*/*/report.json"))


def test_a_run_of_ours_is_measured_and_one_recorded_elsewhere_is_replayed() -> None:
    content = report().as_dict()
    assert evidence_of_report(content) == "measured here"
    assert evidence_of_report(content | {"ingested": {"framework": "trl"}}) == "replayed from logs"
    assert evidence_of_report({key: value for key, value in content.items() if key != "ingested"}) == "measured here"


def test_every_grade_has_a_meaning_and_the_page_about_publishing_has_them_all() -> None:
    assert tuple(MEANINGS) == EVIDENCE
    page = (ROOT / "docs" / "publish.md").read_text(encoding="utf-8")
    assert all(f"| {grade} |" in page for grade in EVIDENCE)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "results").glob("*/*/*/report.json")), ids=lambda path: path.parent.name
)
def test_a_published_run_is_sealed_as_what_it_is(path: Path) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    grade: Evidence = evidence_of_report(content)
    assert (path.parent / "SEAL").read_text(encoding="utf-8").startswith(f"# {grade}, published ")
    states = {record["state"] for record in content["records"] if record["value"] is not None}
    assert ("as written" in states) == (grade == "replayed from logs")
