"""One run of the loop of known truth for all tests here: two repeats that ended well, and one that did not."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from harness.execute.session import choices_of, run_session
from harness.export.content import Content, content_of
from harness.export.export import read_report
from harness.report.model import ReportModel

WORDS = ["adapter=fake", "repeats=2", "task.steps=6", "task.warmup_steps=1", "adapter.drop_every=7"]
UNFINISHED = "its processes ended with signal 9 & left <nothing>"


@pytest.fixture(scope="session")
def fake_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the run, with its report."""
    output = tmp_path_factory.mktemp("runs")
    folder = run_session(choices_of([*WORDS, f"output={output}"], single=False), Console(stderr=True))
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    failed = manifest["cells"][1] | {"repeat": 2, "status": "failed", "cause": "system", "reason": UNFINISHED}
    manifest["cells"].append(failed | {"cell_id": failed["cell_id"].replace(".r1", ".r2")})
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.report.build.draw_figures", lambda model, target: [])
        read_report(folder)
    return folder


@pytest.fixture(scope="session")
def model(fake_run: Path) -> ReportModel:
    """Its report."""
    return read_report(fake_run)


@pytest.fixture(scope="session")
def content(model: ReportModel) -> Content:
    """Its neutral form."""
    return content_of(model)
