"""Reads a cell's sealed ledger."""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.contract.attempts import process_name, split_name
from harness.contract.compact import parquet_path, seal_path
from harness.contract.schema import SCHEMA_VERSION, TABLES, stored_schema

MAIN, HARNESS = "main", "harness"
PROCESS_DIED = "process_died"
"""The kind of fault that declares a process dead which was replaced within its attempt; `where` is its name."""
ROLLOUTS_LOST = "rollouts_lost"
"""The kind of fault that declares a generation whose completions never arrived; `where` is its trace id."""


class CellLedger:
    """The tables of one cell, read when asked for."""

    def __init__(self, directory: Path, cell_id: str, seal: dict[str, Any]) -> None:
        self.directory, self.cell_id, self.seal = directory, cell_id, seal

    def path(self, table: str) -> Path:
        """The Parquet file of a table."""
        return parquet_path(self.directory, self.cell_id, table)

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """A table, or some of its columns.

        Raises:
            ValueError: the file does not have the columns of the schema.
        """
        schema = pq.read_schema(self.path(name))
        if not schema.equals(stored_schema(name)):
            raise ValueError(f"{self.path(name)} does not have the columns of ledger schema {SCHEMA_VERSION}")
        return pq.read_table(self.path(name), columns=list(columns) if columns else None)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The notes of the cell's processes, decoded; a later note of the same key wins."""
        rows = self.table("manifest").to_pylist()
        return {row["key"]: json.loads(row["value"]) for row in rows}

    @property
    def processes(self) -> list[str]:
        """The names of the processes that wrote."""
        return sorted(key.removeprefix("process:") for key in self.manifest if key.startswith("process:"))

    @property
    def attempt(self) -> int:
        """The last attempt at the cell; 0 where it was never started again."""
        return max((split_name(name)[1] for name in self.processes), default=0)

    @property
    def current(self) -> list[str]:
        """The processes of the last attempt that nobody declared dead, and the harness, which outlives attempts. What
        an earlier attempt left torn is what a restart is for; a process that was replaced is declared by a fault."""
        faults = self.table("faults", ["kind", "where"]).to_pylist()
        dead = {fault["where"] for fault in faults if fault["kind"] == PROCESS_DIED}
        last = self.attempt
        alive = [name for name in self.processes if name not in dead]
        return [name for name in alive if split_name(name)[1] == last or split_name(name)[0] == HARNESS]

    @property
    def torn(self) -> bool:
        """Whether a process of the last attempt ended without its closing note: its rows are whole up to its last
        flush."""
        return not self.processes or any(f"closed:{process}" not in self.manifest for process in self.current)

    @cached_property
    def finished(self) -> bool:
        """Whether the last attempt's main process said that the run came to its end."""
        notes = self.table("manifest", ["key", "process"]).to_pylist()
        main = process_name(MAIN, self.attempt)
        return any(note["key"] == "finished" and note["process"] == main for note in notes)


def read_cell(ledger_dir: Path, cell_id: str) -> CellLedger:
    """Open the ledger of a cell.

    Raises:
        ValueError: there is no sealed ledger of that cell, or it is of a schema that this rlaxes cannot read.
    """
    path = seal_path(ledger_dir, cell_id)
    if not path.exists():
        raise ValueError(f"no sealed ledger of cell {cell_id} in {ledger_dir}")
    seal = json.loads(path.read_text(encoding="utf-8"))
    if seal["schema_version"] != SCHEMA_VERSION or set(seal["tables"]) != set(TABLES):
        raise ValueError(f"{path} has ledger schema {seal['schema_version']}, this rlaxes reads {SCHEMA_VERSION}")
    return CellLedger(ledger_dir, cell_id, seal)
