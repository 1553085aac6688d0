"""Cells of the fake adapter, run in this process: ledgers whose every figure can be worked out by hand."""

from pathlib import Path
from typing import Any

import yaml

from adapters.fake.driver import driver
from adapters.fake.loop import FakeLoop
from harness.contract import CellLedger, LedgerWriter, compact, read_cell
from harness.execute.cell import Cell
from harness.measure.api import MeasureContext, measure_cell
from harness.measure.values import Value
from harness.measure.view import CellView, Tables
from harness.probe import Probe

ROOT = Path(__file__).resolve().parents[1]
CELL_ID = "fake.colocated_sync.free.r0"
TASK: dict[str, Any] = {
    "steps": 10,
    "warmup_steps": 2,
    "prompts_per_batch": 4,
    "group_size": 4,
    "max_tokens": 12,
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "minibatches": 1,
    "micro_batches": 1,
    "inner_epochs": 1,
    "learning_rate": 1e-3,
    "clip_low": 0.2,
    "clip_high": 0.2,
    "gradient_checkpointing": False,
}
ROOFLINE = {"bandwidth_bytes_per_s": 1e9, "matrix_flops_per_s": 1e11}
PRICE = {"amount": 3.6, "currency": "EUR", "per": "device_hour", "date": "2026-11-29", "source": "a test"}


def fake_ledger(folder: Path, task: dict[str, Any] | None = None, track: str = "free", **truth: Any) -> CellLedger:
    """The sealed ledger of a fake cell; `task` and `truth` change the settings of `TASK` and conf/adapter/fake.yaml."""
    options = yaml.safe_load((ROOT / "conf/adapter/fake.yaml").read_text(encoding="utf-8")) | truth
    cell = Cell(
        run_id="run/cell",
        cell_id=CELL_ID,
        adapter="fake",
        package="adapters.fake",
        layout={"name": "colocated_sync"},
        track=track,
        repeat=0,
        seed=17,
        observer=True,
        bundle="",
        directory=str(folder),
        attempt=0,
        fault={"name": "none"},
        profile={"name": "cpu", "threads": 1},
        model={"name": "none"},
        adapter_options=options,
        task=TASK | (task or {}),
    )
    cell.write()
    probe = Probe(vars(cell))
    FakeLoop(probe).run()
    probe.close()
    with LedgerWriter(folder / "streams", "harness", cell.run_id) as writer:
        rows = [{"t": None, "step": s, "key": key, "value": value} for s, key, value in driver.native(folder)]
        writer.write("native", rows)
    compact(folder / "streams", folder / "ledger", CELL_ID)
    return read_cell(folder / "ledger", CELL_ID)


def context(task: dict[str, Any] | None = None, **changes: Any) -> MeasureContext:
    """The context of a fake cell, with a price and a roofline that are easy to reckon with."""
    settings = TASK | (task or {})
    fields: dict[str, Any] = {"price": PRICE, "roofline": ROOFLINE} | changes
    return MeasureContext(settings, settings["warmup_steps"], **fields)


def view(folder: Path, task: dict[str, Any] | None = None, **truth: Any) -> CellView:
    """A fake cell as the measures see it."""
    return CellView(Tables(fake_ledger(folder, task, **truth)), context(task))


def figures(folder: Path, task: dict[str, Any] | None = None, **truth: Any) -> dict[str, Value]:
    """All figures of a fake cell by tag and variant."""
    return {value.name: value for value in measure_cell(view(folder, task, **truth))}
