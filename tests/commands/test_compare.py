"""`compare`, as a user meets it: the A/A test's exit code, cells added, failed ones run again."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness.cli import app

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compare.md"
SMALL = ["adapter=fake", "task.steps=4", "task.warmup_steps=1", "repeats=1"]


def _compare(output: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["compare", *SMALL, f"output={output}", "--json", *words])


def _report(result: Result) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(result.stdout)
    return content


def test_a_noisy_machine_ends_with_2_and_the_run_goes_on_once_it_is_accepted(tmp_path: Path) -> None:
    noisy = ["adapter.noise=0.5", "null_test.pairs=3"]
    stopped = _compare(tmp_path, *noisy)
    assert stopped.exit_code == 2, stopped.output
    assert "the same thing varies by" in _report(stopped)["error"]
    (folder,) = tmp_path.iterdir()
    accepted = _compare(tmp_path, *noisy, "null_test.max_noise=9")
    assert accepted.exit_code == 0, accepted.output
    assert _report(accepted)["run_id"] == folder.name
    assert [cell["cell_id"] for cell in _report(accepted)["cells"]] == ["fake.colocated_sync.free.r0"]


def test_into_latest_adds_repeats(tmp_path: Path) -> None:
    first = _report(_compare(tmp_path))
    done = CliRunner().invoke(app, ["compare", f"output={tmp_path}", "repeats=2", "--into", "latest", "--json"])
    assert done.exit_code == 0, done.output
    assert _report(done)["run_id"] == first["run_id"]
    assert [cell["repeat"] for cell in _report(done)["cells"]] == [0, 1]
    refused = _compare(tmp_path, "seed=3", "--into", "latest")
    assert refused.exit_code == 4
    assert "another seed (17 there, 3 here)" in _report(refused)["error"]


def test_redo_failed_says_that_cells_failed_before(tmp_path: Path) -> None:
    assert _compare(tmp_path, "adapter.mode=crash").exit_code == 3
    again = _compare(tmp_path, "adapter.mode=crash", "--redo", "failed")
    assert again.exit_code == 3
    said = [caution["text"] for caution in _report(again)["cautions"] if caution["about"] == "run"]
    assert any("was run again after it failed" in text for text in said), said


def test_the_commands_of_the_page_are_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line of its blocks is understood, with the fake adapter in place of real ones, and a run to add to."""
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["run", "adapter=fake", "task.steps=2", "task.warmup_steps=0"]).exit_code == 0
    blocks = re.findall(r"^```\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line.partition("#")[0].split() for block in blocks for line in block.splitlines()]
    assert len(lines) >= 6
    for rlaxes, *words in lines:
        assert rlaxes == "rlaxes"
        said = [re.sub(r"^adapter=.*", "adapter=fake", word).replace("RUN", "latest") for word in words]
        done = CliRunner().invoke(app, [*said, *([] if "--cfg" in said else ["--cfg"])])
        assert done.exit_code == 0, done.output
