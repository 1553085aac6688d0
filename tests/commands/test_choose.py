"""`rlaxes choose`: from a file to a page, as JSON, and what it refuses; the example and the page of the docs run."""

import json
import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from harness.choose.choice import SIGNED
from harness.choose.topics import TOPICS
from harness.cli import app
from harness.commands.choose import EXAMPLE, FILES
from harness.commands.words import EXIT_USAGE

ROOT = Path(__file__).resolve().parents[2]
FRAMEWORKS = ["areal", "nemo_rl", "openrlhf", "prime_rl", "reference", "skyrl", "trl", "verl"]
PAGE = (ROOT / "docs" / "choose.md").read_text(encoding="utf-8")


def _choose(*words: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(app, ["choose", *words, "--results", str(ROOT / "results")], input=typed)


def test_the_example_asks_of_every_topic_and_becomes_a_page(tmp_path: Path) -> None:
    example = _choose("--example").stdout
    assert yaml.safe_load(example)["requirements"].keys() == TOPICS.keys()
    done = _choose("-", "--output", str(tmp_path / "page"), typed=example)
    assert done.exit_code == 0, done.output
    assert done.stdout.rstrip().endswith("choice.html")
    assert sorted(path.name for path in (tmp_path / "page").iterdir()) == sorted(FILES)
    again = _choose(str(EXAMPLE), "--output", str(tmp_path / "page"))
    assert again.exit_code == EXIT_USAGE
    assert "is not written over" in again.stderr
    written = _choose(str(tmp_path / "page" / FILES[0]), "--json")
    assert (
        json.loads(written.stdout)["requirements"] == json.loads(_choose(str(EXAMPLE), "--json").stdout)["requirements"]
    )


def test_all_seven_and_the_reference_loop_in_the_order_of_their_names() -> None:
    told = json.loads(_choose(str(EXAMPLE), "--json").stdout)
    assert [one["name"] for one in told["frameworks"]] == FRAMEWORKS
    assert len(told["answers"]) == len(FRAMEWORKS) * len(told["requirements"])
    assert told["decision"] == dict.fromkeys(SIGNED)
    for answer in told["answers"]:
        assert (answer["state"] == "unknown") is (not answer["evidence"])
        for piece in answer["evidence"]:
            assert piece["source"]
            assert piece["date"]
    grades = {piece["grade"] for answer in told["answers"] for piece in answer["evidence"]}
    assert {"measured here", "author-reported", "declared"} <= grades


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (
            "requirements: {synchrony: {must: synchronous}, allowed_lag: {must: 4}}",
            "synchronous and allowed lag 4 contradict",
        ),
        ("requirements: {rollout_engine: {must: sglan}}", "did you mean sglang?"),
    ],
)
def test_a_mistake_is_one_line(typed: str, said: str) -> None:
    done = _choose("-", typed=typed)
    assert done.exit_code == EXIT_USAGE
    assert said in " ".join(done.stderr.split())
    assert not done.stdout


def test_a_file_that_is_not_there_is_a_mistake_of_usage(tmp_path: Path) -> None:
    done = _choose(str(tmp_path / "none.yaml"))
    assert done.exit_code == EXIT_USAGE
    assert "cannot be read" in " ".join(done.stderr.split())


def test_without_a_terminal_nothing_is_asked() -> None:
    done = _choose()
    assert done.exit_code == EXIT_USAGE
    assert "choose --example" in " ".join(done.stderr.split())


def test_the_page_of_the_docs_runs(tmp_path: Path) -> None:
    """Its requirements become a page, and what it says is refused is refused in those words."""
    good, *refused = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert _choose("-", "--output", str(tmp_path / "page"), typed=good).exit_code == 0
    shown = re.findall(r"^```\n(rlaxes: .*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(refused) == len(shown) > 0
    for typed, line in zip(refused, shown, strict=True):
        assert " ".join(line.split()) in " ".join(_choose("-", typed=typed).stderr.split())


def test_the_page_of_the_docs_names_every_topic() -> None:
    assert all(f"`{topic}`" in PAGE for topic in TOPICS)
