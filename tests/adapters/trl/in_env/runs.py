"""Real runs of small cells, in this process, and what they left."""

import json
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from adapters.trl.run import run_cell
from harness.contract import CellLedger, compact, read_cell
from harness.probe import Probe
from harness.task.makers import tiny
from harness.task.makers.job import Job, make_bundle
from tests.adapters.trl.cells import TASK, cell_of

Rows = list[dict[str, Any]]


@dataclass
class Run:
    """A cell that ran: what it returned, and its ledger."""

    cell: dict[str, Any]
    result: dict[str, Any]

    @cached_property
    def ledger(self) -> CellLedger:
        """Compacted when first asked for."""
        directory = Path(self.cell["directory"])
        compact(directory / "streams", directory / "ledger", self.cell["cell_id"])
        return read_cell(directory / "ledger", self.cell["cell_id"])

    def rows(self, table: str) -> Rows:
        """A whole table."""
        rows: Rows = self.ledger.table(table).to_pylist()
        return rows

    def spans(self, stage: str) -> Rows:
        """The spans of one stage."""
        return [row for row in self.rows("spans") if row["stage"] == stage]


def small_bundle(folder: Path) -> Path:
    """A fitted tiny model with a few prompts: about a fifth of its answers are right."""
    folder.mkdir()
    task = {"name": TASK["name"], "problems": TASK["problems"]}
    make_bundle(Job(task, {"name": "tiny", "accuracy": 0.2}, folder), tiny.make)
    return folder


def run(directory: Path, bundle: Path, **settings: Any) -> Run:
    """Run a cell for real."""
    directory.mkdir(exist_ok=True)
    cell = cell_of(directory, bundle, **settings)
    (directory / "cell.json").write_text(json.dumps(cell), encoding="utf-8")
    probe = Probe(cell, enabled=cell["observer"])
    with ExitStack() as stack:
        result = run_cell(probe, time.perf_counter_ns(), stack)
    probe.close()
    return Run(cell, result)
