"""`rlaxes check`: is every ledger of a run whole and lawful?"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.audit import integrity
from harness.audit.laws import LAWS, MACROS
from harness.audit.violation import Violation
from harness.contract import TABLES, CellLedger, read_cell, rollout_refusals

MOST_PLACES = 20
"""Of one rule in one cell; what is beyond is counted in the last row."""
BATCH_ROWS = 16_384


def check_run(run: Path) -> list[Violation]:
    """Every violation in the ledgers of a run's cells, in the order of cells and rules; empty where all is lawful.

    A cell that failed is checked too: what it left has to be whole up to its last flush.
    """
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    prompts = _prompts(run)
    found: list[Violation] = []
    for row in [*manifest.get("null_cells", []), *manifest["cells"]]:
        if row["status"] == "not_run":
            continue
        task = _task(manifest, row["cell_id"])
        found += check_cell(run / "ledger", row["cell_id"], task, prompts, ended_well=row["status"] == "ok")
    return found


def _task(manifest: dict[str, Any], cell_id: str) -> dict[str, Any]:
    """The settings that a cell was given; none for a run that was recorded elsewhere."""
    if manifest.get("ingested"):
        return {}
    task: dict[str, Any] = manifest["configs"][cell_id.rsplit(".r", 1)[0]]["resolved"]["task"]
    return task


def check_cell(
    ledger_dir: Path, cell_id: str, task: dict[str, Any], prompts: pa.Table | None, *, ended_well: bool = True
) -> list[Violation]:
    """The violations of one cell. A cell that did not end well is held to the integrity rules of what it left only."""
    try:
        ledger = read_cell(ledger_dir, cell_id)
        broken = list(integrity.sealed_files(ledger))
    except ValueError as error:
        return [Violation("readable", "seal", cell_id, str(error))]
    if any(violation.detail.endswith("missing") for violation in broken):
        return broken
    try:
        found = [*broken, *integrity.flushes(ledger), *integrity.rows(ledger), *_invariants(ledger)]
        if ended_well:
            found += [*integrity.closed(ledger), *_laws(ledger, task, prompts)]
    except (OSError, ValueError, duckdb.Error) as error:
        first = str(error).splitlines()[0]
        return [*broken, Violation("readable", "ledger", cell_id, first)]
    return found


def _invariants(ledger: CellLedger) -> Iterator[Violation]:
    """The invariants of the rollout record hold on reading as they did on writing: in each attempt for itself, since
    several may have made the same sample anew and lost it."""
    for table in ("rollouts", "lost_rollouts"):
        path = ledger.path(table)
        for number, batch in enumerate(pq.ParquetFile(path).iter_batches(BATCH_ROWS)):
            writers = pc.unique(batch["process"]) if table == "lost_rollouts" else [None]
            for writer in writers:
                rows = batch if writer is None else batch.filter(pc.equal(batch["process"], writer))
                for refusal in rollout_refusals(rows)[:MOST_PLACES]:
                    where = f"{path.name}, rows from {number * BATCH_ROWS}, sample {refusal.sample_id}"
                    yield Violation(f"invariant:{refusal.rule}", table, where, f"{refusal.field}: {refusal.reason}")


def _laws(ledger: CellLedger, task: dict[str, Any], prompts: pa.Table | None) -> Iterator[Violation]:
    with duckdb.connect() as connection:
        for table in TABLES:
            connection.from_parquet(str(ledger.path(table)), file_row_number=True).create_view(table)
        for macro in MACROS:
            connection.execute(macro)
        connection.register("settings", _settings(ledger, task))
        if prompts is not None:
            connection.register("bundle_prompts", prompts)
        for law in LAWS:
            if prompts is None and "bundle_prompts" in law.query:
                continue
            rows = connection.execute(law.query).fetchall()
            for place, detail in rows[:MOST_PLACES]:
                yield Violation(law.name, law.table, f"{ledger.path(law.table).name}: {place}", detail)
            if len(rows) > MOST_PLACES:
                more = f"and {len(rows) - MOST_PLACES} more places"
                yield Violation(law.name, law.table, ledger.path(law.table).name, more)


def _settings(ledger: CellLedger, task: dict[str, Any]) -> pa.Table:
    """What the laws hold a cell to; a bound that the cell does not say is null, and holds it to nothing."""
    said = ledger.manifest.get("settings", {})
    updates = said.get("minibatches", 1) * said.get("inner_epochs", 1)
    row = {"group_size": task.get("group_size"), "lag_bound": said.get("lag_bound"), "updates_per_batch": updates}
    kinds = pa.schema([(name, pa.int64()) for name in (*row, "attempt")])
    return pa.Table.from_pylist([row | {"attempt": ledger.attempt}], schema=kinds)


def _prompts(run: Path) -> pa.Table | None:
    """The bundle's prompts as the run kept them; None for an adapter that needs no bundle."""
    path = run / "prompts.jsonl"
    if not path.exists():
        return None
    prompts = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    ids = [prompt["prompt_id"] for prompt in prompts]
    return pa.table({"prompt_id": ids, "token_ids": pa.array([p["token_ids"] for p in prompts], pa.list_(pa.int32()))})
