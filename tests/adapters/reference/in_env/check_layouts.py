"""The four cells from the same parts: equal where they have to be, within the bound where they may differ."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from adapters.reference import disaggregated
from tests.adapters.reference.in_env.cells import bundle, cell, rows, run, varied_rewards  # noqa: F401 (fixtures)
from tests.adapters.reference.in_env.threads import ThreadCluster


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disaggregated, "Cluster", ThreadCluster)


def pools(**changes: int) -> dict[str, Any]:
    return {
        "pools": {
            "replicas": 1,
            "verifiers": 1,
            "trainer_ranks": 1,
            "rollout_threads": 1,
            "trainer_threads": 1,
            "ray_address": None,
        }
        | changes
    }


def trained(ledger: Any) -> list[tuple[Any, ...]]:
    sampled = {row["sample_id"]: tuple(row["response_tokens"]) for row in rows(ledger, "rollouts")}
    return [(row["step"], row["sample_id"], sampled[row["sample_id"]]) for row in rows(ledger, "trained")]


def lags(ledger: Any) -> Counter[int]:
    version = {row["sample_id"]: row["policy_version"] for row in rows(ledger, "rollouts")}
    return Counter(row["policy_version"] - version[row["sample_id"]] for row in rows(ledger, "trained"))


@pytest.mark.parametrize("task", [{}, {"minibatches": 2, "inner_epochs": 2, "steps": 8}], ids=["one", "four"])
def test_a_bound_of_zero_is_the_barrier(bundle: Path, tmp_path: Path, task: dict[str, Any]) -> None:
    barrier, one = run(cell(bundle, tmp_path / "sync", "disaggregated_sync", options=pools(), **task))
    bounded, other = run(cell(bundle, tmp_path / "async", "disaggregated_async", options=pools(), **task))
    assert trained(one) == trained(other)
    assert barrier["final_parameter_sha256"] == bounded["final_parameter_sha256"]


def test_what_runs_beside_the_loop_changes_nothing(bundle: Path, tmp_path: Path) -> None:
    plain, one = run(cell(bundle, tmp_path / "sync"))
    beside, other = run(cell(bundle, tmp_path / "overlap", "colocated_overlap"))
    assert trained(one) == trained(other)
    assert plain["final_parameter_sha256"] == beside["final_parameter_sha256"]
    spans = {(row["process"], row["stage"]) for row in rows(other, "spans")}
    assert {("beside", "verifier"), ("beside", "prompt_prep")} <= spans


@pytest.mark.parametrize(("bound", "minibatches", "replicas"), [(1, 1, 1), (3, 2, 1), (2, 1, 2)])
def test_no_record_is_further_behind_than_the_bound(
    bundle: Path,
    tmp_path: Path,
    bound: int,
    minibatches: int,
    replicas: int,
) -> None:
    task = {"steps": 10, "minibatches": minibatches}
    content = cell(bundle, tmp_path, "disaggregated_async", bound, options=pools(replicas=replicas), **task)
    _, ledger = run(content)
    found = lags(ledger)
    assert max(found) <= bound + minibatches - 1
    assert max(found) > minibatches - 1
    assert Counter(fate["fate"] for fate in rows(ledger, "fates"))["trained"] == 10 // minibatches * 16


def test_a_replica_that_dies_is_replaced_and_its_work_asked_for_again(
    bundle: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = []

    def kill(cluster: ThreadCluster) -> None:
        waits.append(cluster)
        if len(waits) == 4:
            cluster.actors["rollout-0"].dead = True

    monkeypatch.setattr(ThreadCluster, "before_wait", staticmethod(kill))
    _, ledger = run(cell(bundle, tmp_path, "disaggregated_async", 1, options=pools(), steps=6))
    kinds = Counter(fault["kind"] for fault in rows(ledger, "faults"))
    assert kinds == {"process_died": 1, "rollouts_lost": 1}
    assert len(rows(ledger, "updates")) == 6
