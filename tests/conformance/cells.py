"""Which small cells an adapter is held to, and what one of them left behind.

A framework of many processes takes a minute to start, so the cells are few: every pair of (layout, track), (layout,
updates a batch) and (track, updates a batch) that the adapter does not refuse occurs in one of them, and no more.
"""

import json
import shutil
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, product
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console

from harness.contract import CellLedger, read_cell
from harness.execute.family import mark_of, marked
from harness.execute.plan import PlannedCell, cell_of, plan_cells
from harness.execute.run_folder import MANIFEST, open_run
from harness.execute.session import choices_of, run_session

PROMPTS, GROUP, MAX_TOKENS = 2, 4, 8
COMPLETIONS = PROMPTS * GROUP
SMALL = (
    "model=tiny", "task.warmup_steps=1", f"task.prompts_per_batch={PROMPTS}", f"task.group_size={GROUP}",
    f"task.max_tokens={MAX_TOKENS}",
)  # fmt: skip
PLAIN_STEPS = 4
UPDATES = {
    "one_update": (f"task.steps={PLAIN_STEPS}",),
    "four_updates": ("task.steps=8", "task.minibatches=2", "task.inner_epochs=2"),
}
"""Optimizer steps over each generated batch: the batch's own, or two minibatches twice over."""
TRACKS = ("free", "fixed_length")


@dataclass(frozen=True)
class KitCell:
    """One combination; `updates` is a key of `UPDATES`."""

    layout: str
    track: str
    updates: str

    def __str__(self) -> str:
        return f"{self.layout}-{self.track}-{self.updates}"

    @property
    def words(self) -> list[str]:
        """Its settings on the command line."""
        words = [*SMALL, *UPDATES[self.updates], f"layout={self.layout}", f"track={self.track}"]
        # A batch of four updates that waits while another is trained on is four behind.
        waits = self.updates == "four_updates" and self.layout.endswith("_async")
        return [*words, "layout.lag_bound=4"] if waits else words

    @property
    def pairs(self) -> set[frozenset[str]]:
        """The pairs of settings that it covers."""
        return {frozenset(pair) for pair in combinations((self.layout, self.track, self.updates), 2)}


def planned(adapter: str, words: list[str]) -> PlannedCell:
    """The one cell that these words ask for."""
    (cell,) = plan_cells(choices_of([f"adapter={adapter}", *words], single=True))
    return cell


def refusal(adapter: str, cell: KitCell) -> str | None:
    """Why the adapter does not run a cell; None where it does. Its driver alone is asked: nothing starts."""
    plan = planned(adapter, cell.words)
    return plan.adapter.driver.skip(cell_of(plan, "kit", Path("kit"), None))


def offered(adapter: str) -> list[KitCell]:
    """Every combination of the layouts that the adapter declares, in their order, each plainest first."""
    layouts = planned(adapter, list(SMALL)).adapter.spec["layouts"]
    return [KitCell(*combination) for combination in product(layouts, TRACKS, UPDATES)]


@cache
def covering(adapter: str) -> tuple[KitCell, ...]:
    """Cells in which every pair that the adapter runs occurs; the first is the plainest one in its first layout."""
    left = [cell for cell in offered(adapter) if refusal(adapter, cell) is None]
    wanted = {pair for cell in left for pair in cell.pairs}
    chosen: list[KitCell] = []
    while wanted:
        best = left[0] if not chosen else max(left, key=lambda cell: len(cell.pairs & wanted))
        chosen.append(best)
        wanted -= best.pairs
    return tuple(chosen)


class KitRun:
    """A run of one cell that has ended, however it did."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        (self.row,) = self.manifest["cells"]
        (configuration,) = self.manifest["configs"].values()
        self.config: dict[str, Any] = configuration["resolved"]
        self.task: dict[str, Any] = self.config["task"]
        self.survivors = [f"{process.name()} ({process.pid})" for process in self._alive()]

    @property
    def directory(self) -> Path:
        """The cell's own directory."""
        return self.folder / "cells" / self.row["cell_id"]

    @property
    def updates_per_batch(self) -> int:
        """Optimizer steps over each generated batch."""
        return int(self.task["minibatches"] * self.task["inner_epochs"])

    @cached_property
    def ledger(self) -> CellLedger:
        """What it wrote."""
        return read_cell(self.folder / "ledger", self.row["cell_id"])

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table."""
        return list(self.ledger.table(table).to_pylist())

    def lags(self) -> tuple[list[int], list[int]]:
        """How many updates its samples were behind the trainer: at every step that consumed one, and at the first."""
        version = {}
        for row in self.rows("rollouts"):
            tokens = row["token_policy_versions"]
            version[row["sample_id"]] = min(tokens) if tokens else row["policy_version"]
        every: list[int] = []
        first: dict[str, int] = {}
        for row in sorted(self.rows("trained"), key=lambda row: row["step"]):
            every.append(row["policy_version"] - version[row["sample_id"]])
            first.setdefault(row["sample_id"], every[-1])
        return every, list(first.values())

    def _alive(self) -> list[psutil.Process]:
        return marked(mark_of(self.directory))


def run_kit(adapter: str, output: Path, words: list[str], dirt: Path | None = None) -> KitRun:
    """Run one small cell for real.

    Args:
        dirt: the directory of another cell, which lies where this one is to run, as a killed harness leaves it.
    """
    settings = [f"adapter={adapter}", f"output={output}", *words]
    if dirt is not None:
        plan = planned(adapter, settings[1:])
        run = open_run(output, [plan])
        shutil.copytree(dirt, run.cell(plan.cell_id), symlinks=True, ignore_dangling_symlinks=True)
        run.release()
    return KitRun(run_session(choices_of(settings, single=True), Console(stderr=True)))
