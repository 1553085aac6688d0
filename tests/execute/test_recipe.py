"""Recipes: a tuning has a name and a note, or it does not run."""

import pytest

from harness.errors import UserError
from harness.execute.compose import compose_choices, options_of
from harness.execute.plan import plan_cells
from harness.execute.provenance import configurations
from harness.execute.recipe import changed_options

TUNED = ["recipe=tuned", "recipe.by=the TRL team", "recipe.note=steps_per_generation from 1 to 4"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["recipe=tuned"], "recipe.by has no value: write recipe.by=..."),
        (TUNED[:2], "recipe.note has no value: write recipe.note=..."),
        ([*TUNED[:2], "recipe.note=' '"], "needs recipe.by (who tuned it) and recipe.note (what was tuned)"),
        (["recipe.by=me"], "recipe.by speaks of a tuning, and recipe=default has none: write recipe=tuned"),
        (["recipe=best"], "recipe=best: there is no such recipe"),
    ],
)
def test_a_tuning_that_nobody_answers_for_is_refused_in_one_line(words: list[str], message: str) -> None:
    with pytest.raises(UserError) as caught:
        compose_choices(["adapter=fake", *words])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_recipe_is_part_of_what_a_cell_is() -> None:
    default, tuned = (plan_cells(compose_choices(["adapter=fake", "repeats=1", *words])) for words in ([], TUNED))
    assert default[0].key != tuned[0].key
    said = configurations(tuned)["fake.colocated_sync.free"]["recipe"]
    assert (said["name"], said["by"], said["link"]) == ("tuned", "the TRL team", None)


def test_a_recipe_that_nobody_tuned_says_what_the_words_changed() -> None:
    words = ["adapter=reference,fake", "repeats=1", "adapter.checkpoint.every=3"]
    found = configurations(plan_cells(compose_choices(words)))
    assert found["reference.colocated_sync.free"]["recipe"]["changed"] == {"checkpoint.every": 3}
    untouched = configurations(plan_cells(compose_choices(words[:2])))
    assert all(said["recipe"]["changed"] == {} for said in untouched.values())


@pytest.mark.parametrize("system", options_of("adapter"))
def test_no_option_of_an_adapter_is_changed_where_nothing_is_said(system: str) -> None:
    assert changed_options(system, compose_choices([f"adapter={system}"])[0].config["adapter"]) == {}
