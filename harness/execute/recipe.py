"""Who tuned what is compared: `default`, nobody; `tuned`, somebody who is named, with what was tuned."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

import conf
from harness.errors import UserError
from harness.execute.adapter import find_adapter

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


def changed_options(system: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an adapter that the words of a command set otherwise than they are where nothing is said, by
    dotted name. A recipe that nobody tuned has to say them too.

    Args:
        system: the file of `conf/adapter`, or the name of an adapter in a package of its own.
        options: the group `adapter` of the resolved configuration.
    """
    file = Path(conf.__path__[0]) / "adapter" / f"{system}.yaml"
    if file.exists():
        usual = yaml.safe_load(file.read_text(encoding="utf-8"))
    else:
        usual = {"name": system, **find_adapter(system).spec.get("options", {})}
    unsaid = dict(_flat(usual))
    return {key: value for key, value in _flat(options) if key not in unsaid or unsaid[key] != value}


def _flat(options: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in options.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
