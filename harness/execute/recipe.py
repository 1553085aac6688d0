"""Who tuned what is compared: `default`, nobody; `tuned`, somebody who is named, with what was tuned."""

from collections.abc import Mapping
from typing import Any

from harness.errors import UserError

DEFAULT = "default"
SIGNED = ("by", "note", "link", "budget")


def check_recipe(recipe: Mapping[str, Any]) -> None:
    """Refuse a tuning that nobody answers for.

    Args:
        recipe: the group `recipe` of a configuration: `name`, and `SIGNED`.

    Raises:
        UserError: a tuned recipe without a name or a note, or a default one with words about a tuning.
    """
    if recipe["name"] == DEFAULT:
        if said := [key for key in SIGNED if recipe[key] is not None]:
            raise UserError(f"recipe.{said[0]} speaks of a tuning, and recipe=default has none: write recipe=tuned")
        return
    for key in ("by", "note"):
        if not str(recipe[key] or "").strip():
            raise UserError(f"recipe={recipe['name']} needs recipe.by (who tuned it) and recipe.note (what was tuned)")
