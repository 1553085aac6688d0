"""`rlaxes publish` of pages, `rlaxes correct`, `rlaxes check results`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from harness.cli import app
from harness.commands.words import EXIT_USAGE
from harness.report.corrections import corrections_of
from harness.report.published_index import write_index
from tests.report.published import publish_report


def _run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})


@pytest.fixture
def results(tmp_path: Path) -> Path:
    publish_report(tmp_path, 1)
    write_index(tmp_path)
    return tmp_path


def test_a_page_is_taken_in_once(results: Path) -> None:
    page = results / "2026-12-01" / "cpu" / "kills.md"
    page.write_text("# Kills | `x`\n", encoding="utf-8")
    assert _run("check", str(results)).exit_code == 1
    words = ["publish", str(page), "--results", str(results)]
    refused = _run(*words)
    assert refused.exit_code == EXIT_USAGE
    assert "--evidence, one of measured here, replayed from logs" in refused.output
    assert json.loads(_run(*words, "--evidence", "simulated", "--json").stdout)["published"].endswith("kills.md.SEAL")
    assert "[Kills \\| \\`x\\`](2026-12-01/cpu/kills.md)" in (results / "README.md").read_text()
    assert _run("check", str(results)).exit_code == 0
    again = _run(*words, "--evidence", "simulated")
    assert again.exit_code == EXIT_USAGE
    assert "is published already" in again.output


def test_a_page_has_to_lie_where_it_is_published(results: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# P\n", encoding="utf-8")
    done = _run("publish", str(page), "--results", str(results), "--evidence", "simulated")
    assert done.exit_code == EXIT_USAGE
    assert "<date>/<folder>/" in done.output


def test_the_evidence_of_a_run_is_not_a_word_of_the_user(results: Path) -> None:
    done = _run("publish", "latest", "--results", str(results), "--evidence", "measured here")
    assert done.exit_code == EXIT_USAGE
    assert "the evidence of a run is told by the run" in done.output


def test_a_correction_stands_beside_the_table_and_in_the_index(results: Path) -> None:
    run = next(results.glob("2026-12-01/cpu/*/"))
    words = ["correct", run.name, "--results", str(results), "--what", "it was busy", "--why", "a test ran"]
    done = _run(
        *words, "--rows", "reference/*/*/output_tokens_per_second", "--rows", "reference", "--withdraw", "--json"
    )
    assert json.loads(done.stdout) == {"correction": str(run.with_name(f"{run.name}.correction-1.yaml"))}
    (correction,) = corrections_of(run)
    assert correction.withdrawn
    assert correction.rows == ("reference/*/*/output_tokens_per_second", "reference")
    index = (results / "README.md").read_text(encoding="utf-8")
    assert f"[{correction.date}, withdrawn](2026-12-01/cpu/{run.name}.correction-1.yaml): it was busy" in index
    assert _run("check", str(results)).exit_code == 0
    assert _run(*words[:1], str(run), *words[2:]).exit_code == 0
    assert len(corrections_of(run)) == 2


def test_what_is_not_published_cannot_be_corrected(results: Path) -> None:
    done = _run("correct", "elsewhere", "--results", str(results), "--what", "x", "--why", "y")
    assert done.exit_code == EXIT_USAGE
    assert "nothing in" in done.output


def test_check_names_what_was_changed(results: Path) -> None:
    report = next(results.glob("2026-12-01/cpu/*/report.md"))
    report.write_text("# better\n", encoding="utf-8")
    done = _run("check", str(results), "--json")
    assert done.exit_code == 1
    (said,) = json.loads(done.stdout)["violations"]
    assert "report.md was changed after its publication on 2026-12-01" in said
