"""Brings a batch of an older schema version up to today's."""

from collections.abc import Callable

import pyarrow as pa

from harness.contract.schema import SCHEMA_VERSION, stored_schema

Step = Callable[[str, pa.RecordBatch], pa.RecordBatch]


def _from_1(table: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Version 2 counts what a queue event moved, which 1 did not write down and nobody can make up; tables that are
    new in it have no rows in 1, and all others are as they were."""
    if table == "queue" and len(batch):
        raise ValueError("a queue table of ledger schema 1 does not say how much each event moved: it cannot be read")
    return batch if table != "queue" else pa.RecordBatch.from_pylist([], schema=stored_schema("queue"))


STEPS: dict[int, Step] = {1: _from_1}
"""`STEPS[v]` turns a batch of version v (given the table's name) into one of version v + 1."""


def migrate(table: str, batch: pa.RecordBatch, version: int) -> pa.RecordBatch:
    """`batch` as the present schema version has it.

    Raises:
        ValueError: the version is newer than this rlaxes, no step leads on from it, or the columns do not fit.
    """
    if version > SCHEMA_VERSION:
        raise ValueError(f"ledger schema {version} is newer than this rlaxes ({SCHEMA_VERSION}): update rlaxes")
    for step in range(version, SCHEMA_VERSION):
        if step not in STEPS:
            raise ValueError(f"no migration from ledger schema {step}: read it with the rlaxes that wrote it")
        batch = STEPS[step](table, batch)
    if not batch.schema.equals(stored_schema(table)):
        raise ValueError(f"table {table} does not have the columns of ledger schema {SCHEMA_VERSION}")
    return batch
