"""Writing, killing, compacting, reading, and the round trip through JSON, Arrow and Parquet."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.contract import TABLES, BatchRefused, LedgerWriter, compact, migrations, read_cell
from harness.contract.schema import stored_schema
from harness.contract.streams import read_stream, stream_files
from harness.contract.writer import to_batch
from tests.ledgers import CELL_ID, lawful_cell, rollout, write_lawful


def test_every_table_gets_a_file_and_the_ledger_is_not_torn(tmp_path: Path) -> None:
    ledger = lawful_cell(tmp_path)
    assert not ledger.torn
    assert all(ledger.path(table).exists() for table in TABLES)
    assert ledger.table("rollouts").num_rows == 4
    assert stream_files(tmp_path / "streams") == []


def test_a_bad_record_rejects_its_whole_batch_and_its_tokens_stay_counted(tmp_path: Path) -> None:
    with (
        LedgerWriter(tmp_path / "streams", "main", "r") as writer,
        pytest.raises(BatchRefused, match="logprob_positive"),
    ):
        writer.accept_batch([rollout(0), rollout(1, behavior_logprobs=[0.5, -1.0, -1.0, -1.0])])
    compact(tmp_path / "streams", tmp_path / "ledger", CELL_ID)
    ledger = read_cell(tmp_path / "ledger", CELL_ID)
    assert ledger.table("rollouts").num_rows == 0
    faults = [(fault["kind"], fault["where"], fault["rule"]) for fault in ledger.table("faults").to_pylist()]
    assert faults == [
        ("record_refused", "behavior_logprobs", "logprob_positive"),
        ("batch_refused", "gen-0", None),
    ]
    fates = ledger.table("fates").to_pylist()
    assert [(fate["fate"], fate["reason"], fate["policy_tokens"]) for fate in fates] == [
        ("dropped", "refused:logprob_positive", 4)
    ] * 2


def test_the_observations_of_a_refused_batch_are_not_counted(tmp_path: Path) -> None:
    observed = {"policy_mask": [0, 0, 0, 1, 0, 0, 1], "behavior_logprobs": [-0.5, None, None, -0.5]}
    with LedgerWriter(tmp_path / "streams", "main", "r") as writer, pytest.raises(BatchRefused):
        writer.accept_batch([rollout(0, **observed), rollout(1, policy_mask=[1])])
    compact(tmp_path / "streams", tmp_path / "ledger", CELL_ID)
    fates = read_cell(tmp_path / "ledger", CELL_ID).table("fates").to_pylist()
    assert [fate["policy_tokens"] for fate in fates] == [2, 4]


def test_a_killed_writer_leaves_what_it_flushed(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path / "streams", "main", "r")
    write_lawful(writer)
    writer.flush()
    compact(tmp_path / "streams", tmp_path / "ledger", CELL_ID)
    ledger = read_cell(tmp_path / "ledger", CELL_ID)
    assert ledger.torn
    assert ledger.table("trained").num_rows == 4


@given(cut=st.integers(1, 3000))
def test_a_stream_cut_anywhere_reads_up_to_its_last_whole_flush(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    writer = LedgerWriter(folder, "main", "r")
    for number in range(5):
        writer.accept_batch([rollout(number)])
    file = folder / "main.rollouts.arrows"
    whole = file.read_bytes()
    file.write_bytes(whole[: max(0, len(whole) - cut)])
    numbers = [part.batch["flush"][0].as_py() for part in read_stream(file)]
    assert numbers == list(range(len(numbers)))


def test_rows_that_do_not_fit_their_table_are_refused() -> None:
    with pytest.raises(ValueError, match="no column"):
        to_batch("fates", [{"sample": "s"}])
    with pytest.raises(ValueError, match="fate is missing"):
        to_batch("fates", [{"sample_id": "s", "policy_tokens": 1, "t": 1}])
    with pytest.raises(ValueError, match="table fates"):
        to_batch("fates", [{"sample_id": "s", "fate": "trained", "policy_tokens": "many", "t": 1}])


def _rollouts() -> st.SearchStrategy[list[dict[str, Any]]]:
    responses = st.lists(st.tuples(st.integers(0, 2**31 - 1), st.floats(-80, 0, width=32)), max_size=8)

    def build(parts: list[tuple[list[tuple[int, float]], str]]) -> list[dict[str, Any]]:
        return [
            rollout(
                number,
                response_tokens=[token for token, _ in response],
                policy_mask=[0, 0, 0] + [1] * len(response),
                behavior_logprobs=[value for _, value in response],
                text=text,
            )
            for number, (response, text) in enumerate(parts)
        ]

    return st.lists(
        st.tuples(responses, st.text(st.characters(exclude_categories=["Cs"]))), min_size=1, max_size=6
    ).map(build)


@given(rows=_rollouts())
def test_json_arrow_and_parquet_keep_the_meaning(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("trip")
    through_json = json.loads(json.dumps(rows))
    with LedgerWriter(folder / "s", "main", "r") as writer:
        writer.accept_batch(through_json)
    compact(folder / "s", folder / "l", CELL_ID)
    back = read_cell(folder / "l", CELL_ID).table("rollouts").drop_columns(["process", "flush"])
    assert back.combine_chunks().to_batches()[0].equals(to_batch("rollouts", rows))


def test_an_older_schema_is_migrated_and_a_newer_one_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    today = pa.RecordBatch.from_pylist(
        [{"key": "k", "value": "1", "process": "main", "flush": 0}], schema=stored_schema("manifest")
    )
    old = today.rename_columns(["name", "value", "process", "flush"])

    def step(table: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        assert table == "manifest"
        return batch.rename_columns(["key", "value", "process", "flush"]).cast(stored_schema("manifest"))

    monkeypatch.setitem(migrations.STEPS, 0, step)
    assert migrations.migrate("manifest", old, 0).equals(today)
    with pytest.raises(ValueError, match="newer than this rlaxes"):
        migrations.migrate("manifest", today, 99)


def test_version_1_goes_on_but_for_a_queue_that_did_not_say_what_moved() -> None:
    fates = {"sample_id": "s", "fate": "trained", "reason": None, "policy_tokens": 1, "t": 1}
    old = pa.RecordBatch.from_pylist([{**fates, "process": "main", "flush": 0}], schema=stored_schema("fates"))
    assert migrations.migrate("fates", old, 1).equals(old)
    event = {
        "t": 1,
        "event": "put",
        "depth_records": 1,
        "depth_tokens": 4,
        "reason": None,
        "process": "main",
        "flush": 0,
    }
    queue = pa.RecordBatch.from_pylist([event])
    with pytest.raises(ValueError, match="does not say how much"):
        migrations.migrate("queue", queue, 1)
    assert migrations.migrate("queue", queue.slice(1), 1).schema.equals(stored_schema("queue"))
