"""Trajectories of two turns in whole runs: what is sampled, scored, trained on and counted is the policy's alone."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.reference import disaggregated
from adapters.reference.engine import Finished, Generation
from adapters.reference.engine_transformers import TransformersEngine
from adapters.reference.messages import Answer, Request
from harness.errors import SystemFailure
from harness.task.makers import tiny as small
from harness.task.makers.job import Job, make_bundle
from tests.adapters.reference.dialogues import prompt
from tests.adapters.reference.in_env import laws, tiny
from tests.adapters.reference.in_env.cells import attempt, cell, rows, run, sealed, varied_rewards
from tests.adapters.reference.in_env.replica import stand
from tests.adapters.reference.in_env.threads import ThreadCluster

__all__ = ["varied_rewards"]
LAYOUTS = ["colocated_sync", "colocated_overlap", "disaggregated_sync", "disaggregated_async"]
PROBLEMS = {"count": 12, "max_operand": 9}
# A sum of two digits does not end within two tokens: some trajectories have one turn, some two.
TASK: dict[str, Any] = {"name": "arithmetic_two_turn", "problems": PROBLEMS, "max_tokens": 2}


@pytest.fixture(scope="session")
def dialogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle whose model has learnt to end its turns, and little else."""
    folder = tmp_path_factory.mktemp("dialogue")
    make_bundle(Job(TASK, {"name": "tiny", "most_steps": 30}, folder), small.make)
    return folder


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disaggregated, "Cluster", ThreadCluster)


def observed(rollout: dict[str, Any]) -> int:
    """Observation tokens of a rollout."""
    return len(rollout["response_tokens"]) - int(sum(rollout["policy_mask"]))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("versions", ["one", "turn"])
def test_counts_of_policy_tokens_are_the_policys(layout: str, versions: str, dialogue: Path, tmp_path: Path) -> None:
    bound = 1 if layout == "disaggregated_async" else 0
    content = cell(dialogue, tmp_path, layout, bound, options={"versions": versions}, **TASK, minibatches=2)
    _, ledger = run(content)
    rollouts = {rollout["sample_id"]: rollout for rollout in rows(ledger, "rollouts")}
    sampled = {name: sum(rollout["policy_mask"]) for name, rollout in rollouts.items()}
    assert {observed(rollout) for rollout in rollouts.values()} == {0, 4}
    spans = rows(ledger, "spans")
    assert sum(span["output_tokens"] for span in spans) == sum(sampled.values())
    trained = rows(ledger, "trained")
    learnt = [span for span in spans if span["stage"] == "forward_backward"]
    assert sum(span["policy_tokens"] for span in learnt) == sum(sampled[row["sample_id"]] for row in trained)
    context = [rollouts[row["sample_id"]] for row in trained]
    assert sum(span["input_tokens"] for span in learnt) == sum(
        len(rollout["prompt_tokens"]) + observed(rollout) for rollout in context
    )
    assert all(row["policy_tokens"] == sampled[row["sample_id"]] for row in trained)
    assert all(fate["policy_tokens"] == sampled[fate["sample_id"]] for fate in rows(ledger, "fates"))


def test_log_probs_of_both_turns_are_the_policys_and_observations_have_none(dialogue: Path, tmp_path: Path) -> None:
    task = TASK | {"minibatches": 2, "inner_epochs": 2, "micro_batches": 2, "kl_beta": 0.1, "steps": 8}
    _, ledger = run(cell(dialogue, tmp_path, **task))
    rollouts = {rollout["sample_id"]: rollout for rollout in rows(ledger, "rollouts")}
    for row in rows(ledger, "trained"):
        rollout = rollouts[row["sample_id"]]
        mask = rollout["policy_mask"][len(rollout["prompt_tokens"]) :]
        for logprobs in (rollout["behavior_logprobs"], row["trainer_logprobs"], row["old_logprobs"]):
            assert [value is not None for value in logprobs] == [sampled == 1 for sampled in mask]
        gaps = [
            abs(old - said)
            for old, said in zip(row["old_logprobs"], rollout["behavior_logprobs"], strict=True)
            if old is not None
        ]
        assert max(gaps) <= laws.GATE


def test_what_the_policy_did_not_say_is_no_turn_of_the_verifiers(dialogue: Path, tmp_path: Path) -> None:
    _, ledger = run(cell(dialogue, tmp_path, **TASK, steps=1))
    for rollout in rows(ledger, "rollouts"):
        reward = dict(rollout["reward"])
        assert reward["second"] == 0.0 or observed(rollout)
        assert (rollout["text"].count("\n+") >= 1) or not observed(rollout)


def test_a_run_of_two_turns_goes_on_from_a_checkpoint_bit_for_bit(dialogue: Path, tmp_path: Path) -> None:
    kept: dict[str, Any] = {"options": {"checkpoint": {"every": 1}}, **TASK}
    whole = attempt(cell(dialogue, tmp_path / "whole", **kept))
    faults = [{"point": "trainer.after_checkpoint", "role": "trainer", "at": 2, "action": "raise"}]
    content = cell(dialogue, tmp_path / "cut", **kept) | {"fault": {"name": "check", "restarts": 1, "faults": faults}}
    with pytest.raises(SystemFailure):
        attempt(content)
    again = attempt(content | {"attempt": 1})
    assert again["final_parameter_sha256"] == whole["final_parameter_sha256"]
    assert Counter(fate["fate"] for fate in rows(sealed(content), "fates")) == {"trained": 64}


def test_what_waits_in_a_kept_queue_comes_back_with_its_mask_and_log_probs(dialogue: Path, tmp_path: Path) -> None:
    faults = [{"point": "trainer.after_checkpoint", "role": "trainer", "at": 2, "action": "raise"}]
    fault = {"name": "check", "restarts": 1, "faults": faults}
    options = {"checkpoint": {"every": 1}, "versions": "turn"}
    content = cell(dialogue, tmp_path, "disaggregated_async", 2, options=options, **TASK, steps=6) | {"fault": fault}
    with pytest.raises(SystemFailure):
        attempt(content)
    attempt(content | {"attempt": 1})
    ledger = sealed(content)
    rollouts = {rollout["sample_id"]: rollout for rollout in rows(ledger, "rollouts")}
    for row in rows(ledger, "trained"):
        mask = rollouts[row["sample_id"]]["policy_mask"][len(rollouts[row["sample_id"]]["prompt_tokens"]) :]
        assert [value is not None for value in row["trainer_logprobs"]] == [sampled == 1 for sampled in mask]


class Interrupted:
    """An engine that calls `after` once, when its next turn is sampled; None calls nothing."""

    def __init__(self, engine: TransformersEngine) -> None:
        self._engine = engine
        self.after: Callable[[], None] | None = None
        self.name, self.publication_kind = engine.name, engine.publication_kind
        self.publish, self.close = engine.publish, engine.close

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        n: int,
        max_tokens: int,
        between: Callable[[], bool] | None = None,
        finished: Finished | None = None,
    ) -> Generation:
        """See `Engine.generate`."""
        generation = self._engine.generate(prompts, n, max_tokens, between, finished)
        after, self.after = self.after, None
        if after is not None:
            after()
        return generation


@pytest.mark.parametrize("versions", ["one", "turn"])
def test_a_publication_between_turns_is_named_where_it_is_allowed_and_waits_where_not(
    versions: str, tmp_path: Path
) -> None:
    """Log-probs say which weights sampled a turn: the labels must say the same."""
    settings = replace(tiny.SETTINGS, versions=versions, verify_every=10)
    module = tiny.model()
    frozen = tiny.model(seed=0)
    own = TransformersEngine(settings, tiny.model(seed=9), 80, tiny.EOS, shared=False)
    engine = Interrupted(own)
    publications: list[threading.Thread] = []

    def publish() -> None:
        waits = made.pool.workers[0]._door._waiting
        publications.append(threading.Thread(target=made.publisher.publish))
        publications[0].start()
        while not waits:
            publications[0].join(0.01)

    with stand(tmp_path, [engine], settings, module=module) as made:
        made.publisher.publish()
        made.train()
        engine.after = publish
        asked = [prompt(number, [3]) for number in range(6)]
        asked = [replace(one, meta={"observation_ids": [[5, 6, 7]]}) for one in asked]
        answer = made.pool.workers[0].generate(Request("gen-0", asked, 8, 6, 7, 0))
        publications[0].join()
        _check_labels(answer, [one.token_ids for one in asked], {0: frozen, 1: made.module}, versions)
        assert made.pool.workers[0].policy_version == 1
    own.close()


def _check_labels(answer: Answer, prompts: list[list[int]], modules: dict[int, Any], versions: str) -> None:
    assert answer.policy_version == 0
    later = 0
    for ids, group in zip(prompts, answer.groups, strict=True):
        for completion in group:
            turns = len(completion.turns)
            labels = completion.versions or [0] * len(completion.tokens)
            second = 1 if versions != "one" else 0
            place = len(completion.turns[0])
            assert labels[:place] == [0] * place
            if turns > 1:
                later += 1
                assert labels[place : place + 3] == [0] * 3
                assert set(labels[place + 3 :]) == {second}
            exact = {number: tiny.full_forward(module, ids, completion.tokens) for number, module in modules.items()}
            for at, (label, said) in enumerate(zip(labels, completion.logprobs, strict=True)):
                if said is not None:
                    assert abs(said - exact[label][at].item()) <= laws.GATE
    assert later > 3
