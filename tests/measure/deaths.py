"""A hand-made cell that died and went on: `tests.measure.loops` cut in two attempts, every figure known by hand.

It checkpoints after step 2 (10 ms, 500 bytes) and after step 3 (30 ms, 700 bytes), dies after `died` steps, and its
second attempt goes on from step `resumed`.
"""

import json
from pathlib import Path
from typing import Any

from harness.contract import CellLedger, LedgerWriter, compact, process_name, read_cell
from tests.ledgers import CELL_ID, span
from tests.measure.loops import MS, NOTES, STEPS, at, write_step

ITEMS = {
    "parameters": {"state": "restored", "saved": "aa", "found": "aa", "evidence": "after loading"},
    "optimizer": {"state": "restored", "saved": "bb", "found": "bb", "evidence": "moments after loading"},
    "rng": {"state": "restored", "saved": "cc", "found": "cc", "evidence": "generator states"},
}
COLD = ITEMS | {"optimizer": ITEMS["optimizer"] | {"found": "dd"}}
WRITES_MS = {2: 10, 3: 30}
SIZES = {2: 500, 3: 700}
DIED_MS, READY_MS = 395, 397
"""When the first attempt was seen dead, and when the second had restored, in ms from the begin of step 0."""


def dead_cell(
    folder: Path,
    died: int = 3,
    resumed: int = 2,
    version: int | None = None,
    items: dict[str, dict[str, str]] | None = None,
    *,
    kept: bool = True,
    changes: dict[str, Any] | None = None,
    updates: dict[int, dict[str, Any]] | None = None,
    faults: list[dict[str, Any]] | None = None,
    steps: int = STEPS,
) -> CellLedger:
    """The ledger.

    Args:
        died: steps that the first attempt had taken; `resumed`: the step that the second begins with.
        version: the policy version that the second says it goes on from; that of its step where it is None.
        kept: False where the second attempt restored no history.
        changes: columns of the rollouts that the second attempt makes; `updates`: of its optimizer steps.
        faults: rows of that table; `steps`: of the whole run.
    """
    mark: dict[str, Any] | None = None
    with LedgerWriter(folder / "streams", "main", "run/cell") as writer:
        for step in range(died):
            write_step(writer, step, {}, {})
            if step + 1 in WRITES_MS:
                mark = _save(writer, step + 1, mark if step + 1 > resumed else None)
        writer.write("faults", faults or [])
    place = {
        "checkpoint": f"step-{resumed}",
        "step": resumed,
        "policy_version": resumed if version is None else version,
    }
    note = {
        "mark": mark if kept else None,
        **place,
        "restored": ITEMS if items is None else items,
        "t": at(0, READY_MS),
    }
    with LedgerWriter(folder / "streams", process_name("main", 1), "run/cell") as writer:
        _note(writer, "resumed:1", note)
        writer.write("spans", [span("restore", at(0, 396), at(0, 397))])
        for step in range(resumed, steps):
            write_step(writer, step, changes or {}, _later(step, died, (updates or {}).get(step, {})))
        for key, content in NOTES.items():
            _note(writer, key, content)
    with LedgerWriter(folder / "streams", "harness", "run/cell") as writer:
        _note(writer, "attempt:0", {"t_start": at(0, -50), "t_end": at(0, DIED_MS), "returncode": -9})
        _note(writer, "attempt:1", {"t_start": at(0, DIED_MS), "t_end": at(0, 2000), "returncode": 0})
    compact(folder / "streams", folder / "ledger", CELL_ID)
    return read_cell(folder / "ledger", CELL_ID)


def _save(writer: LedgerWriter, step: int, mark: dict[str, Any] | None) -> dict[str, Any]:
    """Write a checkpoint after a step; the mark that a restore of the wanted one brings back."""
    found = {"process": "main", "attempt": 0, "flushes": writer.flushes()}
    end = at(step, -1)
    row = {"step": step, "policy_version": step, "bytes": SIZES[step], "path": f"/cell/step-{step}", "items": "{}"}
    writer.write("checkpoints", [row | {"t_start": end - WRITES_MS[step] * MS, "t_end": end, "ok": True}])
    return mark or found


def _later(step: int, died: int, update: dict[str, Any]) -> dict[str, Any]:
    """The steps of the second attempt end after it was ready."""
    return {"t_start": at(step, 400), "t_end": at(step, 450), "loss": 1.0, **update}


def _note(writer: LedgerWriter, key: str, content: Any) -> None:
    writer.write("manifest", [{"key": key, "value": json.dumps(content)}])
