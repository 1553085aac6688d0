import numpy as np
import pytest

from adapters.trl.advantages import check_advantages, expected_advantages
from adapters.trl.batch import GeneratedBatch
from harness.contract.invariants import rollout_refusals
from harness.contract.writer import to_batch
from harness.probe.hooks import HookDrift
from harness.task.verifier import Verdict

FACTS = {
    "run_id": "r",
    "decoding": {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "max_tokens": 3, "stop": [], "seed": 1},
    "verifier_version": "v",
    "tokenizer_hash": "t",
    "template_hash": "m",
}
RIGHT, FAILED = Verdict(1.0, {"correctness": 1.0}, t_start=4, t_end=5), Verdict(None, {}, "error", "slow", 4, 5)


def batch(verdicts: list[Verdict]) -> GeneratedBatch:
    made = GeneratedBatch(2, 7, 7, ["a", "a", "b", "b"])
    made.prompt_tokens = [[5, 6], [5, 6], [5], [5]]
    made.response_tokens = [[9, 1], [9, 9, 9], [1], [8, 1]]
    made.logprobs = [np.full(len(tokens), -0.5, np.float32) for tokens in made.response_tokens]
    made.texts, made.verdicts, made.advantages = ["x"] * 4, verdicts, [0.5, -0.5, 0.0, 0.0]
    made.unended = made.truncated = [False, True, False, False]
    made.masked = [False] * 4
    made.times = {"t_generate_start": 1, "t_first_token": 2, "t_generate_end": 3}
    return made


@pytest.mark.parametrize("verdicts", [[RIGHT] * 4, [FAILED, RIGHT, RIGHT, RIGHT]], ids=["scored", "one failed"])
def test_its_rows_are_lawful(verdicts: list[Verdict]) -> None:
    rows = batch(verdicts).rollout_rows(FACTS)
    assert rollout_refusals(to_batch("rollouts", rows), published=7) == []
    assert [row["sample_id"] for row in rows] == ["a.b2.g0", "a.b2.g1", "b.b2.g0", "b.b2.g1"]
    assert [row["status"] for row in rows][1:] == ["truncated", "ok", "ok"]


def test_a_failed_verdict_leaves_its_group_incomplete() -> None:
    rows = batch([FAILED, RIGHT, RIGHT, RIGHT]).rollout_rows(FACTS)
    assert [row["group_complete"] for row in rows] == [False, False, True, True]
    assert (rows[0]["status"], rows[0]["reward_total"]) == ("infrastructure_error", None)


def test_padding_is_cut_off_the_trainers_log_probs() -> None:
    step = {"batch_id": "b", "step": 0, "epoch": 0, "policy_version": 7, "published_version": 7, "t_step_start": 1}
    padded = np.full((2, 3), -0.25, np.float32)
    rows = batch([RIGHT] * 4).trained_rows([2, 1], step, padded, None)
    assert [(row["sample_id"], len(row["trainer_logprobs"]), row["policy_tokens"]) for row in rows] == [
        ("b.b2.g0", 1, 1),
        ("a.b2.g1", 3, 3),
    ]
    assert {row["old_logprobs"] for row in rows} == {None}
    to_batch("trained", rows)


def test_the_advantages_of_trls_source() -> None:
    half = 0.5 / (np.std([0.0, 1.0], ddof=1) + 1e-4)
    assert expected_advantages([0.0, 1.0, None, 1.0], 2, scaled=True) == pytest.approx([-half, half, 0.0, 0.0])
    assert expected_advantages([0.0, 1.0, None, None], 2, scaled=False) == pytest.approx([-0.5, 0.5, 0.0, 0.0])
    check_advantages([0.0, 1.0], [-half, half], 2, scaled=True)
    with pytest.raises(HookDrift, match="ddof 1"):
        check_advantages([0.0, 1.0], [-1.0, 1.0], 2, scaled=True)
