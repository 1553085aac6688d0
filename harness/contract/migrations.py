"""Brings a batch of an older schema version up to today's."""

from collections.abc import Callable

import pyarrow as pa

from harness.contract.schema import SCHEMA_VERSION, stored_schema

Step = Callable[[str, pa.RecordBatch], pa.RecordBatch]

STEPS: dict[int, Step] = {}
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
