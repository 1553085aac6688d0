"""The parts of a plan that go to machines of their own. What is paired stays together: a part runs on one machine, in
turns, as a whole plan does."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from harness.errors import UserError
from harness.execute.compose import Choice
from harness.execute.null_plan import plan_null
from harness.execute.plan import PlannedCell, plan_cells
from harness.execute.version import Version

REFERENCE = "reference"
"""The adapter that stands beside every other, and through which two machines are compared."""
WHOLE = "all"
SPLITS = ("none", "adapter")


@dataclass(frozen=True)
class Part:
    """What one job runs. In one that is of a split, the cells of the reference are the part's own, by name too."""

    name: str
    choices: list[Choice]
    split: bool

    @cached_property
    def cells(self) -> list[PlannedCell]:
        """Its cells in the order in which they run, planned once: keys hold the code as it was then."""
        cells = plan_cells(self.choices)
        return [_beside(cell, self.name) for cell in cells] if self.split else cells

    @cached_property
    def null_cells(self) -> list[PlannedCell]:
        """Those of its A/A test: each part has its own, since each runs on a machine of its own."""
        cells = plan_null(self.choices)
        return [_named(cell, cell.label, self.name) for cell in cells] if self.split else cells

    def as_data(self) -> dict[str, Any]:
        """For a job's file."""
        choices = [{"adapter": c.adapter, "config": c.config, "version": _written(c.version)} for c in self.choices]
        return {"name": self.name, "choices": choices, "split": self.split}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Self:
        """What `as_data` wrote."""
        choices = [Choice(c["adapter"], c["config"], _read(c["version"])) for c in data["choices"]]
        return cls(data["name"], choices, data["split"])


def parts_of(choices: Sequence[Choice], split: str) -> list[Part]:
    """One part with all, or with `split` "adapter" one for each adapter, each with the reference beside it.

    Raises:
        UserError: there is no such split, or no reference to hold the parts together.
    """
    if split not in SPLITS:
        raise UserError(f"launcher.split={split}: it has to be one of {', '.join(SPLITS)}")
    names = sorted({choice.adapter for choice in choices} - {REFERENCE})
    if split == "none" or len(names) < 2:
        return [Part(WHOLE, list(choices), split=False)]
    if not any(choice.adapter == REFERENCE for choice in choices):
        raise UserError(
            f"launcher.split=adapter: machines are compared through the reference loop: write "
            f"adapter={','.join([REFERENCE, *names])}"
        )
    return [Part(name, [c for c in choices if c.adapter in (REFERENCE, name)], split=True) for name in names]


def _beside(cell: PlannedCell, part: str) -> PlannedCell:
    return _named(cell, cell.system, part) if cell.adapter.name == REFERENCE else cell


def _named(cell: PlannedCell, name: str, part: str) -> PlannedCell:
    """The cell with ids that begin with the name of its part."""
    ids = {key: f"{name}~{part}" + getattr(cell, key).removeprefix(name) for key in ("cell_id", "twin")}
    return replace(cell, **ids)


def _written(version: Version | None) -> dict[str, Any] | None:
    if version is None:
        return None
    return asdict(version) | {key: str(path) for key in ("lock", "source") if (path := getattr(version, key))}


def _read(data: dict[str, Any] | None) -> Version | None:
    if data is None:
        return None
    return Version(**data | {key: Path(data[key]) for key in ("lock", "source") if data[key]})
