import json
from pathlib import Path

import pytest

from harness.errors import UserError
from harness.report.model import ReportModel
from harness.report.publish import publish_run
from harness.report.published_index import complaints
from harness.report.scrub import scrub, scrub_text
from tests.report.runs import cell, make_run


def _run(folder: Path) -> Path:
    failed = cell("trl", status="failed", cause="system", reason="no such file: /home/someone/models/x.bin")
    return make_run(folder, [cell("reference"), failed])


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.report.build.draw_figures", lambda model, folder: [])


def test_a_dated_table(tmp_path: Path) -> None:
    results = tmp_path / "results"
    folder = publish_run(_run(tmp_path), results)
    assert folder == results / "2026-11-29" / "cpu" / "2026-11-29-101500-ab12"
    assert {path.name for path in folder.iterdir()} == {
        *("report.md", "report.json", "report.html", "manifest.json", "figures", "SEAL")
    }
    model = ReportModel.from_dict(json.loads((folder / "report.json").read_text()))
    drawn = {f"{figure.name}.svg" for figure in model.figures if figure.reason is None}
    assert {path.name for path in (folder / "figures").iterdir()} == drawn
    assert "2026-11-29/cpu/2026-11-29-101500-ab12/report.md" in (results / "README.md").read_text()
    assert complaints(results) == []


def test_nothing_of_the_machine_is_published(tmp_path: Path, no_figures: None) -> None:
    folder = publish_run(_run(tmp_path), tmp_path / "results")
    for path in folder.rglob("*"):
        if path.is_file():
            text = path.read_text()
            assert "/home/" not in text
            assert str(tmp_path) not in text
    assert "<path>/x.bin" in (folder / "manifest.json").read_text()


def test_what_is_published_stays(tmp_path: Path, no_figures: None) -> None:
    run, results = _run(tmp_path), tmp_path / "results"
    folder = publish_run(run, results)
    before = (folder / "report.json").read_bytes()
    with pytest.raises(UserError, match="published already"):
        publish_run(run, results)
    assert (folder / "report.json").read_bytes() == before
    assert (results / "README.md").read_text().count("ab12](") == 1


def test_a_run_that_has_not_ended_is_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path, [cell("reference")], finished=None)
    with pytest.raises(UserError, match="has not ended"):
        publish_run(run, tmp_path / "results")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("see /home/ann/x/y.log now", "see <path>/y.log now"),
        ("~/models/tiny", "<path>/tiny"),
        ("path:/tmp/a/b", "path:<path>/b"),
        ("https://github.com/huggingface/trl/tree/v1", "https://github.com/huggingface/trl/tree/v1"),
        ("tokens/s and input / output", "tokens/s and input / output"),
        ("adapters/fake/loop.py", "adapters/fake/loop.py"),
        ("on host-a7 as ann", "on <name> as <name>"),
        ("host-a77", "host-a77"),
    ],
)
def test_scrub_text(text: str, clean: str) -> None:
    assert scrub_text(text, ["host-a7", "ann"]) == clean


def test_scrub_reaches_everything() -> None:
    assert scrub({"/a/b": ["/c/d", 1, None]}, []) == {"<path>/b": ["<path>/d", 1, None]}
