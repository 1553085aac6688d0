"""What a run of TRL leaves: whole, lawful, and the same training as without a probe."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from adapters.trl.hooks import hook_drift
from harness.task.bundle import Bundle
from tests.adapters.trl.in_env.runs import Run, run

NOISE = 1e-4
"""Float32: the same log-prob with and without a key-value cache."""
LAGGED = {"steps": 8, "minibatches": 2, "micro_batches": 2, "inner_epochs": 2}
SHAPES: list[dict[str, Any]] = [
    {"temperature": 0.7},
    {"top_k": 5},
    {"top_p": 0.8},
    {"min_p": 0.05},
    {"track": "fixed_length"},
]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, bundle: Path) -> Run:
    return run(tmp_path_factory.mktemp("plain"), bundle)


@pytest.fixture(scope="module")
def lagged(tmp_path_factory: pytest.TempPathFactory, bundle: Path) -> Run:
    return run(tmp_path_factory.mktemp("lagged"), bundle, **LAGGED)


def zero_lag_gaps(done: Run) -> np.ndarray[Any, Any]:
    """Trainer minus behaviour log-prob of every token that was trained on at lag 0."""
    rollouts = {row["sample_id"]: row for row in done.rows("rollouts")}
    gaps: list[float] = []
    for row in done.rows("trained"):
        rollout = rollouts[row["sample_id"]]
        if row["policy_version"] == rollout["policy_version"]:
            gaps += np.subtract(row["trainer_logprobs"], rollout["behavior_logprobs"]).tolist()
    return np.array(gaps)


def test_no_hook_has_drifted() -> None:
    assert hook_drift() == []


def test_it_takes_the_bundles_prompts_in_file_order(plain: Run, bundle: Path) -> None:
    prompts = Bundle.load(bundle).prompts
    expected = [prompts[index].token_ids for index in range(12) for _ in range(4)]
    assert [row["prompt_tokens"] for row in plain.rows("rollouts")] == expected
    assert plain.rows("rollouts")[5]["sample_id"] == f"{prompts[1].prompt_id}.b0.g1"


def test_every_sample_has_one_fate_and_the_tokens_close(plain: Run) -> None:
    rollouts, fates = plain.rows("rollouts"), plain.rows("fates")
    assert sorted(row["sample_id"] for row in fates) == sorted(row["sample_id"] for row in rollouts)
    assert {row["fate"] for row in fates} == {"trained"}
    sampled = sum(row["output_tokens"] for row in plain.rows("spans"))
    assert sampled == sum(len(row["response_tokens"]) for row in rollouts) == sum(row["policy_tokens"] for row in fates)


def test_a_rollout_says_what_trl_saw(plain: Run) -> None:
    for row in plain.rows("rollouts"):
        ended = row["response_tokens"][-1] == 1
        assert row["stop_reason"] == ("eos" if ended else "length")
        assert row["status"] == ("ok" if ended else "truncated")
        assert row["stop_reason_source"] == "derived"
        assert row["reward_total"] == dict(row["reward"])["correctness"]


def test_the_engine_and_the_trainer_agree_at_zero_lag(plain: Run, lagged: Run) -> None:
    for done in (plain, lagged):
        assert np.abs(zero_lag_gaps(done)).max() < NOISE


def test_stages_of_the_step_do_not_overlap(plain: Run) -> None:
    spans = sorted(plain.rows("spans"), key=lambda row: row["t_start"])
    assert all(a["t_end"] <= b["t_start"] for a, b in pairwise(spans))
    stages = {"prompt_prep", "prefill", "decode", "verifier", "batch_assembly", "forward_backward", "optimizer_step"}
    assert {row["stage"] for row in spans} == stages | {"startup", "observation"}
    assert not stages & plain.ledger.manifest["absent_stages"].keys()


def test_a_step_is_an_update_and_a_publication(plain: Run) -> None:
    updates, publications = plain.rows("updates"), plain.rows("publications")
    assert [(row["policy_version_before"], row["policy_version_after"]) for row in updates] == [(0, 1), (1, 2), (2, 3)]
    assert all(row["applied"] and np.isfinite([row["loss"], row["grad_norm"]]).all() for row in updates)
    assert [row["policy_version"] for row in publications] == [0, 1, 2, 3]
    assert {(row["kind"], row["bytes"], row["verified"]) for row in publications} == {("shared", 0, True)}


def test_settings_are_read_back(plain: Run) -> None:
    held = plain.ledger.manifest["settings"]
    same = set(plain.cell["task"]) - {"problems"}
    assert {key: held[key] for key in same} == {key: plain.cell["task"][key] for key in same}


def test_several_updates_of_one_batch_are_real_lag(lagged: Run) -> None:
    versions = {row["sample_id"]: row["policy_version"] for row in lagged.rows("rollouts")}
    lag = Counter(row["policy_version"] - versions[row["sample_id"]] for row in lagged.rows("trained"))
    assert lag == {0: 16, 1: 16, 2: 16, 3: 16}
    assert all(len(row["old_logprobs"]) == row["policy_tokens"] for row in lagged.rows("trained"))
    assert len(lagged.spans("logprob_recompute")) == 2
    assert {row["batch_id"] for row in lagged.rows("updates")} == {
        f"batch-{batch}-mb-{part}{epoch}" for batch in (0, 1) for part in (0, 1) for epoch in ("", "-e1")
    }


@pytest.mark.parametrize("settings", [{}, LAGGED], ids=["plain", "lagged"])
def test_a_probe_changes_nothing(plain: Run, lagged: Run, settings: Any, tmp_path: Path, bundle: Path) -> None:
    bare = run(tmp_path / "bare", bundle, observer=False, **settings).result
    probed = (lagged if settings else plain).result
    for key in ("train_loss", "final_parameter_sha256"):
        assert bare[key] == probed[key]
    assert not (tmp_path / "bare" / "streams").exists()


@pytest.mark.parametrize("settings", SHAPES, ids=str)
def test_log_probs_are_of_the_distribution_really_sampled(
    settings: dict[str, Any], tmp_path: Path, bundle: Path
) -> None:
    done = run(tmp_path / "shaped", bundle, steps=1, warmup_steps=0, **settings)
    model = AutoModelForCausalLM.from_pretrained(bundle / "model", dtype="float64")
    for row in done.rows("rollouts"):
        prompt, response = row["prompt_tokens"], row["response_tokens"]
        with torch.no_grad():
            logits = model(torch.tensor([prompt + response])).logits[0, len(prompt) - 1 : -1]
        expected = [float(shaped(logits[at], settings)[token]) for at, token in enumerate(response)]
        assert np.allclose(row["behavior_logprobs"], expected, atol=NOISE)
        assert settings.get("track") != "fixed_length" or (len(response), row["status"]) == (6, "ok")


def shaped(logits: torch.Tensor, settings: dict[str, Any]) -> torch.Tensor:
    """The sampler's log-probs by their definitions, in float64."""
    logits = logits.clone() / settings.get("temperature", 1.0)
    if settings.get("track") == "fixed_length":
        logits[1] = -torch.inf
    order = logits.argsort(descending=True)
    probabilities = logits.softmax(-1)[order]
    keep = torch.ones_like(probabilities, dtype=torch.bool)
    keep[settings.get("top_k") or len(logits) :] = False
    keep &= probabilities.cumsum(0) - probabilities < settings.get("top_p", 1.0)
    keep &= probabilities >= settings.get("min_p", 0.0) * probabilities[0]
    logits[order[~keep]] = -torch.inf
    return logits.log_softmax(-1)


def test_a_masked_completion_is_dropped_and_not_trained_on(tmp_path: Path, bundle: Path) -> None:
    done = run(tmp_path / "masked", bundle, mask_truncated=True, max_tokens=2)
    cut = {row["sample_id"] for row in done.rows("rollouts") if row["stop_reason"] == "length"}
    dropped = {
        row["sample_id"] for row in done.rows("fates") if (row["fate"], row["reason"]) == ("dropped", "truncated")
    }
    assert cut
    assert cut == dropped
    assert not cut & {row["sample_id"] for row in done.rows("trained")}
    assert sum(row["records"] for row in done.rows("updates")) == len(done.rows("trained"))


def test_trl_says_its_own_figures(plain: Run) -> None:
    from adapters.trl.native import native_figures

    figures = native_figures(Path(plain.cell["directory"]))
    assert [step for step, key, _ in figures if key == "step_time"] == [0, 1, 2]
    tokens = sum(len(row["prompt_tokens"]) + len(row["response_tokens"]) for row in plain.rows("rollouts"))
    assert [value for _, key, value in figures if key == "num_tokens"][-1] == tokens
    assert json.dumps(plain.result)
