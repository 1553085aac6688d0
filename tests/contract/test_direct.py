"""A ledger that is written at once: whole, sealed, and read as any other."""

from pathlib import Path

import pyarrow as pa
import pytest

from harness.audit.check import check_cell
from harness.contract import WRITTEN, read_cell, write_sealed

ROWS = [{"t": None, "step": step, "key": "loss", "value": step / 7} for step in range(10)]


def batches() -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pylist(part, schema=WRITTEN["native"]) for part in (ROWS[:4], ROWS[4:])]


def test_it_is_whole_and_lawful(tmp_path: Path) -> None:
    assert write_sealed(tmp_path, "one.r0", "reader", {"native": batches()}, {"from": ["a.log"]}) == 10
    ledger = read_cell(tmp_path, "one.r0")
    assert ledger.manifest["from"] == ["a.log"]
    assert not ledger.torn
    table = ledger.table("native")
    assert table["value"].to_pylist() == [row["value"] for row in ROWS]
    assert table["flush"].to_pylist() == [0] * 4 + [1] * 6
    assert check_cell(tmp_path, "one.r0", {}, None) == []


def test_a_batch_of_another_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not have the columns of table queue"):
        write_sealed(tmp_path, "one.r0", "reader", {"queue": batches()}, {})
