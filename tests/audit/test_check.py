"""`rlaxes check` finds a change of one byte, a lost flush, a swapped version, and every broken law, with its place."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from harness.audit.check import check_cell
from harness.audit.violation import Violation
from harness.contract import CellLedger, LedgerWriter, compact, read_cell
from harness.contract.seal import seal_file, write_json
from tests.ledgers import CELL_ID, lawful_cell, rollout, span, write_lawful

TASK = {"group_size": 2}
Change = Callable[[pa.Table], pa.Table]


def _check(ledger: CellLedger, prompts: pa.Table | None = None) -> list[Violation]:
    return check_cell(ledger.directory, ledger.cell_id, TASK, prompts)


def _rewrite(ledger: CellLedger, table: str, change: Change, *, reseal: bool) -> CellLedger:
    """Change a sealed table; `reseal` forges the seal too, so that only the laws can find it."""
    path = ledger.path(table)
    pq.write_table(change(pq.read_table(path)), path, compression="zstd", write_page_checksum=True)
    if reseal:
        ledger.seal["tables"][table] |= seal_file(path)
        write_json(ledger.directory / f"{ledger.cell_id}.seal.json", ledger.seal)
    return read_cell(ledger.directory, ledger.cell_id)


def _set(table: pa.Table, row: int, column: str, value: Any) -> pa.Table:
    values = table[column].to_pylist()
    values[row] = value
    index = table.column_names.index(column)
    return table.set_column(index, table.field(column), pa.array(values, table.field(column).type))


def test_a_lawful_ledger_has_no_violation(tmp_path: Path) -> None:
    prompts = pa.table({"prompt_id": ["p0", "p1"], "token_ids": pa.array([[5, 6, 7]] * 2, pa.list_(pa.int32()))})
    assert _check(lawful_cell(tmp_path), prompts) == []


@pytest.mark.parametrize("place", [0.1, 0.4, 0.9])
def test_one_changed_byte_is_found_with_its_place(tmp_path: Path, place: float) -> None:
    ledger = lawful_cell(tmp_path)
    path = ledger.path("rollouts")
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 1
    path.write_bytes(content)
    found = _check(ledger)
    assert found[0].rule == "sealed_bytes"
    assert found[0].where == path.name
    assert "bytes 0-" in found[0].detail


def test_a_dropped_flush_is_found_even_under_a_forged_seal(tmp_path: Path) -> None:
    with LedgerWriter(tmp_path / "streams", "main", "r") as writer:
        write_lawful(writer, samples=2)
        writer.accept_batch([rollout(n) for n in (2, 3)])
    compact(tmp_path / "streams", tmp_path / "ledger", CELL_ID)
    ledger = _rewrite(
        read_cell(tmp_path / "ledger", CELL_ID),
        "rollouts",
        lambda t: t.filter(pc.not_equal(t["flush"], 1)),
        reseal=True,
    )
    found = {violation.rule: violation for violation in _check(ledger)}
    assert "flushes [1] of 2" in found["flush_missing"].detail
    assert "row_count" in found


def test_two_swapped_policy_versions_are_found_even_under_a_forged_seal(tmp_path: Path) -> None:
    ledger = _rewrite(lawful_cell(tmp_path), "rollouts", lambda t: _set(t, 2, "policy_version", 1), reseal=True)
    found = {violation.rule for violation in _check(ledger)}
    assert {"version_served", "version_of_span", "lag_not_negative"} <= found
    assert any("p1.b0.g0" in violation.where for violation in _check(ledger))


BREACHES: list[tuple[str, str, Change]] = [
    ("fate_of_each_sample", "fates", lambda t: t.slice(1)),
    ("fate_is_true", "fates", lambda t: _set(t, 0, "fate", "in_flight")),
    ("fate_has_reason", "fates", lambda t: _set(t, 0, "fate", "dropped")),
    ("tokens_close", "spans", lambda t: _set(t, 0, "output_tokens", 15)),
    ("fate_tokens", "fates", lambda t: _set(t, 0, "policy_tokens", 3)),
    ("trained_was_generated", "trained", lambda t: _set(t, 0, "sample_id", "ghost")),
    ("trained_once_a_step", "trained", lambda t: _set(t, 1, "sample_id", "p0.b0.g0")),
    ("trained_lengths", "trained", lambda t: _set(t, 0, "trainer_logprobs", [-0.5])),
    ("trained_in_update", "trained", lambda t: _set(t, 0, "batch_id", "batch-9")),
    ("trained_version", "trained", lambda t: _set(t, 0, "policy_version", 5)),
    ("update_counts", "updates", lambda t: _set(t, 0, "policy_tokens", 99)),
    ("update_chain", "updates", lambda t: _set(t, 0, "policy_version_after", 4)),
    ("published_was_trained", "publications", lambda t: _set(t, 0, "policy_version", 7)),
    ("span_time", "spans", lambda t: _set(t, 0, "t_end", 0)),
    ("spans_do_not_overlap", "spans", lambda t: _set(t, 1, "t_start", t["t_start"][0].as_py() + 1)),
    ("one_verifier", "rollouts", lambda t: _set(t, 0, "verifier_version", "v2")),
    ("group_size", "rollouts", lambda t: _set(t, 0, "group_id", "p9.b0")),
    ("invariant:logprob_positive", "rollouts", lambda t: _set(t, 0, "behavior_logprobs", [0.5, -1.0, -1.0, -1.0])),
]


@pytest.mark.parametrize(("law", "table", "change"), BREACHES, ids=[breach[0] for breach in BREACHES])
def test_each_law_is_broken_by_name(tmp_path: Path, law: str, table: str, change: Change) -> None:
    ledger = _rewrite(lawful_cell(tmp_path), table, change, reseal=True)
    assert law in {violation.rule for violation in _check(ledger)}


def test_foreign_prompt_ids_are_found(tmp_path: Path) -> None:
    prompts = pa.table({"prompt_id": ["p0", "p1"], "token_ids": pa.array([[5, 6, 7], [5, 6]], pa.list_(pa.int32()))})
    assert {v.rule for v in _check(lawful_cell(tmp_path), prompts)} == {"prompt_of_bundle"}


def test_a_killed_process_is_named(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path / "streams", "main", "r")
    write_lawful(writer)
    writer.write("spans", [span("decode", 1, 2)])
    writer.flush()
    compact(tmp_path / "streams", tmp_path / "ledger", CELL_ID)
    assert "closing_note" in {v.rule for v in _check(read_cell(tmp_path / "ledger", CELL_ID))}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    ledger = lawful_cell(tmp_path)
    ledger.path("updates").unlink()
    assert [v.detail for v in _check(ledger)] == ["the file is missing"]
