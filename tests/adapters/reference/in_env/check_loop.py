"""Whole runs on a random model: the ledger's laws, lag, seeds, verifier errors, and the unobserved twin."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from harness.contract import compact, read_cell
from harness.task.bundle import Bundle
from harness.task.verifier import Verdict, Verifier
from tests.adapters.reference.in_env.cells import bundle, cell, rows, run, varied_rewards  # noqa: F401 (fixtures)


def test_every_record_is_accounted_for(bundle: Path, tmp_path: Path) -> None:
    _, ledger = run(cell(bundle, tmp_path))
    rollouts, fates = rows(ledger, "rollouts"), rows(ledger, "fates")
    assert len(rollouts) == 4 * 16
    assert Counter(fate["fate"] for fate in fates) == {"trained": 64}
    assert {fate["sample_id"] for fate in fates} == {rollout["sample_id"] for rollout in rollouts}
    asked = {prompt.prompt_id: prompt.token_ids for prompt in Bundle.load(bundle).prompts}
    assert all(rollout["prompt_tokens"] == asked[rollout["prompt_id"]] for rollout in rollouts)
    assert [r["prompt_id"] for r in rollouts[48::4]] == [r["prompt_id"] for r in rollouts[:16:4]]
    spans = rows(ledger, "spans")
    sampled = sum(len(rollout["response_tokens"]) for rollout in rollouts)
    assert sum(span["output_tokens"] for span in spans) == sampled
    assert sum(span["policy_tokens"] for span in spans if span["stage"] == "forward_backward") == sampled
    assert [update["policy_version_after"] for update in rows(ledger, "updates")] == [1, 2, 3, 4]
    assert [(p["published_version"], p["verified"]) for p in rows(ledger, "publications")] == [
        (0, True),
        (1, None),
        (2, True),
        (3, None),
        (4, True),
    ]


def test_leaf_spans_never_overlap(bundle: Path, tmp_path: Path) -> None:
    _, ledger = run(cell(bundle, tmp_path))
    spans = sorted((span["t_start"], span["t_end"]) for span in rows(ledger, "spans"))
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_several_updates_a_batch_train_on_records_of_lag_0_to_3(bundle: Path, tmp_path: Path) -> None:
    _, ledger = run(cell(bundle, tmp_path, minibatches=2, inner_epochs=2, micro_batches=2, steps=6, kl_beta=0.1))
    version = {rollout["sample_id"]: rollout["policy_version"] for rollout in rows(ledger, "rollouts")}
    trained = rows(ledger, "trained")
    lags = Counter(row["policy_version"] - version[row["sample_id"]] for row in trained)
    assert lags == {0: 16, 1: 16, 2: 8, 3: 8}
    assert Counter(fate["fate"] for fate in rows(ledger, "fates")) == {"trained": 32}
    for row in trained:
        gap = max(abs(new - old) for new, old in zip(row["trainer_logprobs"], row["old_logprobs"], strict=True))
        assert (gap < 1e-4) == (row["policy_version"] == version[row["sample_id"]])
    batches = [update["batch_id"] for update in rows(ledger, "updates")]
    assert batches[:4] == ["batch-0-mb-0", "batch-0-mb-1", "batch-0-mb-0-e1", "batch-0-mb-1-e1"]


def test_what_the_last_step_left_over_is_in_flight(bundle: Path, tmp_path: Path) -> None:
    _, ledger = run(cell(bundle, tmp_path, minibatches=4, steps=5))
    assert Counter(fate["fate"] for fate in rows(ledger, "fates")) == {"trained": 20, "in_flight": 12}


def test_equal_seeds_give_equal_parameters_bit_for_bit_observed_or_not(bundle: Path, tmp_path: Path) -> None:
    results = [
        run(cell(bundle, tmp_path / str(number), seed=seed, observer=observer, minibatches=2))[0]
        for number, (seed, observer) in enumerate([(5, True), (5, True), (5, False), (6, True)])
    ]
    digests = [result["final_parameter_sha256"] for result in results]
    assert digests[0] == digests[1] == digests[2] != digests[3]
    assert results[0]["final_loss"] == results[2]["final_loss"]
    assert not (tmp_path / "2" / "streams").exists()


def test_a_verifier_that_fails_costs_the_sample_and_not_a_reward(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    score = Verifier.score

    def failing(self: Verifier, items: list[tuple[str, str]]) -> list[Verdict]:
        verdicts = score(self, items)
        for index in (1, 8, 9, 10):
            verdicts[index] = replace(verdicts[index], reward_total=None, status="error", detail="made to fail")
        return verdicts

    monkeypatch.setattr(Verifier, "score", failing)
    _, ledger = run(cell(bundle, tmp_path, steps=2))
    rollouts = rows(ledger, "rollouts")[:16]
    failed = {rollouts[index]["sample_id"] for index in (1, 8, 9, 10)}
    assert {r["sample_id"] for r in rollouts if r["status"] == "infrastructure_error"} == failed
    assert all(r["reward_total"] is None and r["advantage"] is None for r in rollouts if r["sample_id"] in failed)
    assert [r["group_complete"] for r in rollouts] == [False] * 4 + [True] * 4 + [False] * 4 + [True] * 4
    fates = {fate["sample_id"]: (fate["fate"], fate["reason"]) for fate in rows(ledger, "fates")}
    assert all(fates[name] == ("dropped", "infrastructure_error") for name in failed)
    # The third group has one verdict left, which there is nothing to compare with.
    assert fates[rollouts[11]["sample_id"]] == ("dropped", "no_other_verdict_in_group")
    trained = {row["sample_id"] for row in rows(ledger, "trained")}
    assert trained == {name for name, (fate, _) in fates.items() if fate == "trained"}
    assert rows(ledger, "updates")[0]["records"] == 11
    assert Counter(fault["cause"] for fault in rows(ledger, "faults")) == {"infrastructure": 8}


def test_a_batch_without_any_verdict_is_a_step_that_was_not_applied(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    score = Verifier.score

    def failing(self: Verifier, items: list[tuple[str, str]]) -> list[Verdict]:
        return [replace(verdict, reward_total=None, status="error") for verdict in score(self, items)]

    monkeypatch.setattr(Verifier, "score", failing)
    _, ledger = run(cell(bundle, tmp_path, steps=2))
    assert [(u["applied"], u["loss"], u["records"]) for u in rows(ledger, "updates")] == [(False, None, 0)] * 2
    assert Counter(fate["fate"] for fate in rows(ledger, "fates")) == {"dropped": 32}


def test_fixed_length(bundle: Path, tmp_path: Path) -> None:
    _, ledger = run(cell(bundle, tmp_path, track="fixed_length"))
    rollouts = rows(ledger, "rollouts")
    assert {len(rollout["response_tokens"]) for rollout in rollouts} == {5}
    assert {(rollout["stop_reason"], rollout["status"]) for rollout in rollouts} == {("length", "ok")}


def test_truncated_completions_can_be_left_out(bundle: Path, tmp_path: Path) -> None:
    _, ledger = run(cell(bundle, tmp_path, mask_truncated=True, steps=1))
    status = {rollout["sample_id"]: rollout["status"] for rollout in rows(ledger, "rollouts")}
    assert "truncated" in status.values()
    for fate in rows(ledger, "fates"):
        expected = "dropped" if status[fate["sample_id"]] == "truncated" else "trained"
        assert fate["fate"] == expected


def test_a_setting_that_cannot_be_is_a_fault_with_a_cause(bundle: Path, tmp_path: Path) -> None:
    content = cell(bundle, tmp_path, prompts_per_batch=13)
    (tmp_path / "cell.json").write_text(json.dumps(content), encoding="utf-8")
    command = [sys.executable, "-m", "adapters.reference.inside"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLAXES_CELL", str(tmp_path / "cell.json"))
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    compact(tmp_path / "streams", tmp_path / "ledger", content["cell_id"])
    (fault,) = rows(read_cell(tmp_path / "ledger", content["cell_id"]), "faults")
    assert (fault["kind"], fault["cause"]) == ("settings", "harness")
    assert "the bundle has 12 prompts" in fault["detail"]
