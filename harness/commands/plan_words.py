"""What the formulas of `rlaxes plan` are asked, as settings `key=value` over defaults, and how answers are told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import yaml
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.commands.words import print_json, words
from harness.errors import UserError
from harness.simulate.reading import build, nearest

T = TypeVar("T")


def read_words(given: Sequence[str], known: Sequence[str]) -> dict[str, Any]:
    """`key=value` words as a mapping, values as YAML reads them.

    Raises:
        UserError: a word is no setting, or none of the `known`.
    """
    found: dict[str, Any] = {}
    for word in given:
        key, equals, value = word.partition("=")
        if not equals:
            raise UserError(f"'{word}' is not a setting: write key=value")
        if key not in known:
            raise UserError(f"there is no setting {key}{nearest(key, list(known))}")
        try:
            found[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise UserError(f"{word}: {str(error).splitlines()[0]}") from error
    return found


def ask(kind: type[T], given: Mapping[str, Any], defaults: Mapping[str, Any]) -> T:
    """The settings of a dataclass, each as given or by default."""
    return build(kind, {**defaults, **given})


@dataclass
class Answer:
    """Rows of name, value, how it is shown, and formula; warnings; and anything else for `--json`."""

    rows: list[tuple[str, float | str | None, str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, value: float | str | None, shown: str, formula: str = "") -> None:
        """One more row."""
        self.rows.append((name, value, shown, formula))

    def tell(self, *, as_json: bool) -> None:
        """Print it."""
        if as_json:
            figures = {name: value for name, value, _, _ in self.rows}
            print_json({"figures": figures, "warnings": self.warnings, **self.more})
            return
        table = Table(box=None, show_header=False)
        for name, _, shown, formula in self.rows:
            table.add_row(*map(escape, (name, shown, formula)))
        Console(width=120, highlight=False).print(table)
        for warning in self.warnings:
            words.print(f"! {warning}", markup=False, highlight=False, soft_wrap=True)


def size(value: float) -> str:
    """Bytes for a reader: exact, and in the unit that fits."""
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value >= scale:
            return f"{value / scale:,.2f} {unit}"
    return f"{value:,.0f} bytes"


def seconds(value: float) -> str:
    """A duration for a reader."""
    for unit, scale in (("h", 3600.0), ("min", 60.0)):
        if value >= 2 * scale:
            return f"{value / scale:,.2f} {unit}"
    return f"{value:,.4g} s"
