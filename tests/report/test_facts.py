"""The facts of a run: who tuned what ran."""

from typing import Any

import pytest

from harness.report.facts import recipe_words, task_facts
from harness.report.published_index import index_page
from tests.report.published import publish_report
from tests.report.runs import manifest

DEFAULT: dict[str, Any] = {"name": "default", "by": None, "note": None, "link": None, "budget": None, "changed": {}}
TUNED = DEFAULT | {"name": "tuned", "by": "the TRL team", "note": "4 steps a batch", "budget": "2 hours"}


def _with(*recipes: dict[str, Any]) -> dict[str, Any]:
    content = manifest([], tuple(f"system{number}" for number in range(len(recipes))))
    for (place, config), recipe in zip(content["configs"].items(), recipes, strict=True):
        resolved = config["resolved"] | {"recipe": recipe}
        content["configs"][place] = {"hash": "77", "recipe": recipe, "resolved": resolved}
    return content


def test_a_recipe_in_words() -> None:
    assert recipe_words(DEFAULT) == "default, tuned by nobody"
    assert recipe_words(TUNED) == "tuned by the TRL team: 4 steps a batch; budget: 2 hours"
    changed = DEFAULT | {"changed": {"queue.lag": None, "every": 2}}
    said = "default, tuned by nobody; options of the command: adapter.queue.lag=none, adapter.every=2"
    assert recipe_words(changed) == said
    linked = TUNED | {"budget": None, "link": "https://example.org/1"}
    assert recipe_words(linked) == "tuned by the TRL team: 4 steps a batch; https://example.org/1"


def test_a_report_says_each_recipe_once() -> None:
    assert task_facts(_with(DEFAULT, DEFAULT))["recipe"] == recipe_words(DEFAULT)
    assert task_facts(_with(DEFAULT, TUNED))["recipe"] == f"{recipe_words(DEFAULT)} / {recipe_words(TUNED)}"
    assert "recipe" not in task_facts(manifest([]))


@pytest.mark.parametrize(("recipe", "mark"), [(DEFAULT, "reference 1.0 |"), (TUNED, "reference 1.0 (tuned) |")])
def test_the_index_marks_what_was_tuned(tmp_path: Any, recipe: dict[str, Any], mark: str) -> None:
    publish_report(tmp_path, 1, configs={"reference.colocated_sync.free": {"recipe": recipe, "resolved": {"task": {}}}})
    assert mark in index_page(tmp_path)
