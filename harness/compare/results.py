"""What a comparison is made of: the values of one cell, or the reason why it has none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from harness.measure.values import Value

GroupKey: TypeAlias = tuple[str, str, str]
"""Adapter, layout, track: a group of cells that differ in their repeat alone."""


@dataclass(frozen=True)
class CellResult:
    """One cell of a run.

    Attributes:
        status: "ok", or as in the cell's verdict: "failed", "torn", "not_run".
        cause: system, infrastructure or harness, where it failed.
        reason: one line, where it is not ok.
        values: what was measured; empty where nothing was.
        foreign_cores: cores that other processes used while it ran; None where that cannot be told.
        place: where it ran, in words that are part of `adapter`; empty where all of its run ran in one place. Cells of
            two places are never paired.
        fidelity: what it held of each task setting, as in the cell's row (`harness.execute.adapter.Fidelity`).
    """

    adapter: str
    layout: str
    track: str
    repeat: int
    status: str
    cause: str | None
    reason: str | None
    values: Sequence[Value]
    foreign_cores: float | None = None
    place: str = ""
    fidelity: Sequence[Mapping[str, Any]] = ()

    @property
    def name(self) -> str:
        """What it is called in its run."""
        return f"{self.adapter}.{self.layout}.{self.track}.r{self.repeat}"

    @property
    def key(self) -> GroupKey:
        """The group that it is a repeat of."""
        return self.adapter, self.layout, self.track

    def find(self, name: str) -> Value | None:
        """The value of that tag and variant."""
        return next((value for value in self.values if value.name == name), None)


def groups_of(cells: Sequence[CellResult]) -> dict[GroupKey, list[CellResult]]:
    """The repeats of each group in their order; groups in the order of their names."""
    groups: dict[GroupKey, list[CellResult]] = {}
    for cell in sorted(cells, key=lambda cell: (*cell.key, cell.repeat)):
        groups.setdefault(cell.key, []).append(cell)
    return groups
