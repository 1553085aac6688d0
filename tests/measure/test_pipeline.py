"""Work, critical path, utilisation and period of two pools that overlap: four different figures.

A rollout pool samples a batch in 80 ms and its verifier takes 10; a training pool needs 30 ms a batch and 5 ms to
publish. The trainer always waits for the next batch: the period is the 90 ms of the rollout pool.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.contract import LedgerWriter, compact, read_cell
from harness.measure.api import MeasureContext, measure_cell
from harness.measure.values import Value
from tests.ledgers import CELL_ID, rollout, span

MS = 1_000_000
BATCHES = 6
PERIOD = 90


def _batch(number: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Spans of the rollout pool and of the training pool for a batch; batch k is sampled from k * 90 ms on."""
    begin = number * PERIOD * MS
    made, done = f"gen-{number}", begin + PERIOD * MS
    here = {"trace_id": made, "device": "rollout"}
    there = {"step": number, "trace_id": f"batch-{number}-mb-0", "device": "trainer"}
    version = max(0, number - 1)
    rollouts = [
        span("decode", begin, begin + 80 * MS, output_tokens=16, policy_version=version, **here),
        span("verifier", begin + 80 * MS, done, **here),
    ]
    waited = 55 * MS if number else 0
    training = [
        *([span("queue_wait", done - waited, done, **there)] if waited else []),
        span("forward_backward", done, done + 28 * MS, policy_tokens=16, **there),
        span("optimizer_step", done + 28 * MS, done + 30 * MS, **there),
        span("weight_sync", done + 30 * MS, done + 35 * MS, policy_version=number + 1, **there),
    ]
    return rollouts, training


def _records(writer: LedgerWriter, number: int) -> None:
    begin = number * PERIOD * MS
    done = begin + PERIOD * MS
    ids = {"trace_id": f"gen-{number}", "policy_version": max(0, number - 1)}
    rows = [
        rollout(n, **ids, sample_id=f"{number}.{n}", t_generate_start=begin, t_generate_end=begin + 80 * MS)
        for n in range(4)
    ]
    writer.accept_batch(rows)
    common = {"step": number, "batch_id": f"batch-{number}-mb-0"}
    trained = {"epoch": 0, "policy_version": number, "policy_tokens": 4, "t_step_start": done, "advantage": 0.0}
    writer.write("trained", [common | trained | {"sample_id": row["sample_id"]} for row in rows])
    versions = {"policy_version_before": number, "policy_version_after": number + 1, "applied": True}
    counts = {"records": 4, "groups": 2, "policy_tokens": 16, "padded_tokens": 0}
    writer.write("updates", [common | versions | counts | {"t_start": done, "t_end": done + 30 * MS}])


def _figures(folder: Path, replicas: int) -> dict[str, Value]:
    """With several replicas, each does a part of every batch in the same time."""
    streams = folder / "streams"
    with LedgerWriter(streams, "rollout-0", "r") as pool, LedgerWriter(streams, "trainer", "r") as trainer:
        for number in range(BATCHES):
            rollouts, training = _batch(number)
            for _ in range(replicas):
                pool.write("spans", rollouts)
            trainer.write("spans", training)
            _records(trainer, number)
        window = {"t_start": 0, "t_end": (BATCHES * PERIOD + 35) * MS}
        trainer.write("manifest", [{"key": "window", "value": json.dumps(window)}])
    compact(streams, folder / "ledger", CELL_ID)
    values = measure_cell(read_cell(folder / "ledger", CELL_ID), MeasureContext({"micro_batches": 1}, 0))
    return {value.name: value for value in values}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Value]:
    return _figures(tmp_path_factory.mktemp("pools"), replicas=1)


def test_work_is_the_sum_of_both_pools(found: dict[str, Value]) -> None:
    assert found["work_seconds"].value == pytest.approx(BATCHES * (0.090 + 0.035))


def test_critical_path_runs_through_the_rollout_pool(found: dict[str, Value]) -> None:
    """Back from the last step: its batch, whose pool was busy with the one before, and so on to the first."""
    assert found["critical_path_seconds"].value == pytest.approx(BATCHES * 0.090 + 0.030)
    assert found["critical_path_share[decode]"].numerator == pytest.approx(BATCHES * 0.080)
    assert found["critical_path_share[forward_backward]"].numerator == pytest.approx(0.028)
    assert "critical_path_share[weight_sync]" not in found


def test_utilisation_of_each_pool(found: dict[str, Value]) -> None:
    wall = BATCHES * 0.090 + 0.035
    assert found["pool_utilisation[rollout]"].value == pytest.approx(BATCHES * 0.090 / wall)
    assert found["pool_utilisation[trainer]"].value == pytest.approx(BATCHES * 0.035 / wall)


def test_period_is_that_of_the_slower_pool(found: dict[str, Value]) -> None:
    assert found["period_seconds"].value == pytest.approx(0.090)
    assert found["period_overlapped_seconds"].value == pytest.approx(0.090)
    assert found["period_sequential_seconds"].value == pytest.approx(0.125)


def test_a_run_that_overlaps_takes_t_n(found: dict[str, Value]) -> None:
    """T_n = 90 + 35 + 5 x 90 ms; one after another it would be 6 x 125 ms."""
    assert found["run_overlapped_seconds"].value == pytest.approx(0.575)
    assert found["run_seconds"].value == pytest.approx(0.575)
    assert found["run_sequential_seconds"].value == pytest.approx(0.750)
    assert found["run_overlapped_seconds"].n == BATCHES


def test_replicas_side_by_side_are_one_stage(tmp_path: Path) -> None:
    found = _figures(tmp_path, replicas=3)
    assert found["period_overlapped_seconds"].value == pytest.approx(0.090)
    assert found["run_overlapped_seconds"].value == pytest.approx(0.575)


def test_waiting_is_attributed_but_is_no_work(found: dict[str, Value]) -> None:
    assert found["stage_seconds_p50[queue_wait]"].value == pytest.approx(0.055)
    assert found["unattributed_share"].value == pytest.approx(0)
    assert found["t_seq_seconds"].value == pytest.approx(0.125)


def test_records_are_as_old_as_the_pipeline_is_deep(found: dict[str, Value]) -> None:
    assert found["lag_max"].value == 1
    assert found["lag_p50"].value == 1
