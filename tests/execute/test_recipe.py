"""Recipes: a tuning has a name and a note, or it does not run."""

import pytest

from harness.errors import UserError
from harness.execute.compose import compose_choices
from harness.execute.plan import plan_cells
from harness.execute.provenance import configurations

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
