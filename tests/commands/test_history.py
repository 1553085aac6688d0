"""`rlaxes history`: as a table, as JSON, as a page; what it refuses."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.commands.words import EXIT_USAGE
from tests.report.published import publish_report

SPEED = "measure=output_tokens_per_second"


def _said(*words: str) -> str:
    done = CliRunner().invoke(app, ["history", *words], env={"COLUMNS": "100"})
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def results(tmp_path: Path) -> Path:
    pytest.importorskip("ruptures", reason="it has no release for this Python")
    for day in range(1, 13):
        publish_report(tmp_path, day, (100.0 if day < 7 else 80.0) * (1 + 0.002 * (day % 3)))
    return tmp_path


def test_a_line_with_its_change(results: Path) -> None:
    text = _said(str(results), SPEED)
    assert "reference · colocated sync · free · machine Example, 2 cores, 16 GiB, without an id · settings " in text
    assert "Output tokens/s: (6 before) 2026-12-07 80.2 tokens/s [79.4–81.0] · 2026-12-08 80.3 tokens/s" in text
    assert "changed with 2026-12-07-100000-0007 (2026-12-07): 100 tokens/s -> 80.2 tokens/s, 0.80" in text
    assert "Changed beside it: nothing that is recorded: look at the machine" in text
    assert "1 of 1 lines are long enough to be searched for changes; nothing is ranked" in text
    assert "reference 1.0: all there (2026-12-12, 2026-12-12-100000-000c)" in text


def test_what_an_adapter_declares_is_shown_where_it_is_asked_for(results: Path) -> None:
    text = _said(str(results), "adapter=trl")
    assert "trl 0.17: completion_length is called completions/mean_length" in text
    assert "trl synchrony: until 1.0.0 (seen at 0.29.1): synchronous" in text
    assert "completion_length is called" not in _said(str(results))


def test_json_has_everything(results: Path) -> None:
    content = json.loads(_said(str(results), SPEED, "--json"))
    assert content.keys() == {"reports", "lines", "left_out", "hooks", "axes", "keys"}
    (line,) = content["lines"]
    assert len(line["points"]) == len(content["reports"]) == 12
    assert [moved["run_after"] for moved in line["moved"]] == ["2026-12-07-100000-0007"]
    assert line["points"][0]["context"]["rlaxes"] == "0.1.0 0123456789ab"
    assert {change["framework"] for change in content["keys"]} >= {"trl", "openrlhf"}


def test_a_page(results: Path, tmp_path: Path) -> None:
    page = tmp_path / "history.html"
    assert _said(str(results), SPEED, "--html", str(page)) == ""
    assert "data:image/svg+xml;base64," in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("speed=1", "there is no filter speed; there are adapter, layout, track, measure, since"),
        ("measure=speed", "there is no figure speed; docs/measures.md has them all"),
        ("since=last-month", "since=last-month is no day: write YYYY-MM-DD"),
        ("nowhere", "nowhere holds no report"),
    ],
)
def test_a_wrong_word_is_one_line(results: Path, word: str, message: str) -> None:
    done = CliRunner().invoke(app, ["history", str(results), word])
    assert done.exit_code == EXIT_USAGE
    assert message in " ".join(done.output.split())


def test_the_published_results_are_read() -> None:
    root = Path(__file__).resolve().parents[2] / "results"
    content = json.loads(_said(str(root), "adapter=reference", "measure=step_seconds", "--json"))
    assert content["lines"]
    assert all(line["points"] for line in content["lines"])
    assert [fact["adapter"] for fact in content["hooks"]] == ["reference"]
