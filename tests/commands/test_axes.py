"""`rlaxes axes`: by values, whole, as JSON, as Markdown, as a page."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.commands.axes import PAGE, framework_page
from harness.commands.words import EXIT_USAGE
from harness.contract.axes import AXES

KEYS = {"adapter", "axis", "declared", "values", "unread", "source", "version", "date", "stale", "changed", "measured"}
FRAMEWORKS = {"areal", "nemo_rl", "openrlhf", "prime_rl", "skyrl", "trl", "verl"}


def _said(*words: str) -> str:
    done = CliRunner().invoke(app, ["axes", *words], env={"COLUMNS": "100"})
    assert done.exit_code == 0, done.output
    return done.stdout


def test_all_are_shown_by_their_values() -> None:
    text = _said()
    assert all(kind.title in text for kind in AXES.values())
    assert all(text.count(f"  {name}") >= len(AXES) for name in FRAMEWORKS)
    assert max(map(len, text.splitlines())) <= 100
    assert "fake" not in text


def test_a_named_one_is_shown_whole() -> None:
    text = " ".join(_said("verl").split())
    assert "verl/workers/rollout/base.py _ROLLOUT_REGISTRY" in text
    assert "changed: until 0.7.0 (seen at 0.6.1): vLLM and SGLang in the trainer's process" in text
    assert "openrlhf" not in text


def test_measured_stands_beside_declared(tmp_path: Path) -> None:
    axis = {"adapter": "verl", "axis": "queue", "measured": "at most 7 deep", "evidence": "queue", "differs": True}
    report = {"run_id": "r", "created": "2026-11-30", "adapters": {"verl": {"version": "0.9.0"}}, "axes": [axis]}
    folder = tmp_path / "2026-11-30" / "cpu" / "r"
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
    text = _said("verl", "--results", str(tmp_path))
    assert "measured otherwise: at most 7 deep (queue; 0.9.0, r)" in text


def test_json_has_every_axis_of_every_framework() -> None:
    content = json.loads(_said("--json"))
    assert all(entry.keys() == KEYS for entry in content["axes"])
    found = {(entry["adapter"], entry["axis"]) for entry in content["axes"]}
    assert {(name, axis) for name in FRAMEWORKS for axis in AXES} <= found
    assert not [entry for entry in content["axes"] if entry["stale"]]
    for entry in content["axes"]:
        assert set(entry["values"]) <= content["vocabulary"][entry["axis"]]["values"].keys()


def test_the_page_is_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == framework_page(), "run python -m harness.commands.axes"
    assert _said("--markdown") in page


def test_a_page_in_html(tmp_path: Path) -> None:
    assert _said("--html", str(tmp_path / "map.html")) == ""
    assert "OpenRLHF 0.11.2" in (tmp_path / "map.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("words", [["nosuch"], ["verl", "nosuch", "--json"]])
def test_a_name_that_there_is_not(words: list[str]) -> None:
    done = CliRunner().invoke(app, ["axes", *words])
    assert done.exit_code == EXIT_USAGE
    assert "no adapter nosuch; there are areal" in " ".join(done.stderr.split())
