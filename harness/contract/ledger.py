"""Reads a cell's sealed ledger."""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.contract.compact import parquet_path, seal_path
from harness.contract.schema import SCHEMA_VERSION, TABLES, stored_schema


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
    def torn(self) -> bool:
        """Whether a process ended without its closing note: its rows are whole up to its last flush."""
        return not self.processes or any(f"closed:{process}" not in self.manifest for process in self.processes)


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
