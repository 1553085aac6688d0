"""Trajectories of several turns: whose each token is, which version sampled it, and that no store loses either."""

import json
import pickle
import random
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.reference.engine import Completion
from adapters.reference.queue import RolloutQueue, sample_bytes
from adapters.reference.sample_lines import from_lines, to_lines
from adapters.reference.samples import Sample, fate_row, rollout_row
from adapters.reference.turns import conduct, longest_prompt
from harness.contract import read_cell
from harness.contract.compact import compact
from harness.contract.invariants import rollout_refusals
from harness.contract.writer import LedgerWriter, to_batch
from harness.task.bundle import Bundle
from tests.adapters.reference.cells import settings
from tests.adapters.reference.dialogues import EOS, TOLD, Parrot, asked, dialogues, samples
from tests.adapters.reference.groups import Queued
from tests.ledgers import CELL_ID, DECODING

SEEDS = st.integers(0, 2**32)
TOLDS = st.lists(st.lists(st.integers(1, 3), max_size=3), min_size=1, max_size=4)
VERSIONS = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(sorted)
FACTS = {"verifier_version": "v1", "tokenizer_hash": "t", "template_hash": "c"}


def rows_of(made: list[Sample]) -> list[dict[str, Any]]:
    return [rollout_row(sample, Bundle(Path(), FACTS), "run", DECODING) for sample in made]


def runs(completion: Completion) -> Iterator[tuple[int, list[int]]]:
    """The mask's runs, and the tokens of each."""
    pairs = zip(completion.policy_mask, completion.tokens, strict=True)
    for mask, run in groupby(pairs, key=lambda pair: pair[0]):
        yield mask, [token for _, token in run]


@given(SEEDS, TOLDS, VERSIONS)
def test_every_token_is_the_policys_or_the_environments(seed: int, told: list[list[int]], versions: list[int]) -> None:
    parrot, answer = dialogues(seed, told, versions)
    request = asked(told)
    prompts = [prompt for prompt in request.prompts for _ in range(request.group_size)]
    completions = [completion for group in answer.groups for completion in group]
    assert sum(completion.policy_tokens for completion in completions) == sum(len(said.tokens) for said in parrot.said)
    for prompt, completion in zip(prompts, completions, strict=True):
        turns = [tokens for mask, tokens in runs(completion) if mask]
        assert completion.turns == turns
        assert all(token < TOLD for turn in turns for token in turn)
        assert [tokens for mask, tokens in runs(completion) if not mask] == prompt.observation_ids[: len(turns) - 1]
        assert all(turn[-1] == EOS for turn in turns[:-1])
        assert (completion.stop_reason == "eos") == (turns[-1][-1] == EOS)
        assert completion.stop_reason == "length" or len(turns) == 1 + len(prompt.observation_ids)
        for sampled, logprob in zip(completion.policy_mask, completion.logprobs, strict=True):
            assert (logprob is None) != bool(sampled)
        assert completion.t_queued <= completion.t_start <= completion.t_first <= completion.t_end


@given(SEEDS, TOLDS, VERSIONS)
def test_a_turn_is_served_all_that_came_before_it_and_bears_its_version(
    seed: int, told: list[list[int]], versions: list[int]
) -> None:
    parrot, answer = dialogues(seed, told, versions)
    completions = [completion for group in answer.groups for completion in group]
    request = asked(told)
    prompts = [prompt for prompt in request.prompts for _ in range(request.group_size)]
    assert parrot.calls[0] == [prompt.token_ids for prompt in request.prompts]
    assert (answer.policy_version, answer.published_version) == (versions[0], versions[0])
    for turn, call in enumerate(parrot.calls[1:], start=1):
        going = [(p, c) for p, c in zip(prompts, completions, strict=True) if len(c.turns) > turn]
        assert call == [[*p.token_ids, *before_turn(c, turn)] for p, c in going]
    for completion in completions:
        each = completion.versions or [answer.policy_version] * len(completion.tokens)
        served = [versions[min(turn, len(versions) - 1)] for turn in range(len(completion.turns))]
        assert each == list(expected_versions(completion, served))
        assert completion.versions is None or len(set(served)) > 1


def before_turn(completion: Completion, turn: int) -> list[int]:
    """The tokens before that turn."""
    every = list(runs(completion))
    return [token for _, tokens in every[: 2 * turn] for token in tokens]


def expected_versions(completion: Completion, served: list[int]) -> Iterator[int]:
    turn = -1
    for mask, tokens in runs(completion):
        turn += mask
        yield from [served[turn]] * len(tokens)


@given(SEEDS, TOLDS, VERSIONS)
def test_json_arrow_parquet_and_processes_keep_mask_versions_and_logprobs(
    tmp_path_factory: pytest.TempPathFactory, seed: int, told: list[list[int]], versions: list[int]
) -> None:
    made = samples(seed, told, versions)
    rows = rows_of(made)
    batch = to_batch("rollouts", rows)
    assert rollout_refusals(batch, published=max(versions)) == []
    path = tmp_path_factory.mktemp("rows") / "rollouts.parquet"
    pq.write_table(pa.Table.from_batches([batch]), path)
    kept = ("policy_mask", "token_policy_versions", "behavior_logprobs", "response_tokens", "policy_version")
    expected = [{name: row[name] for name in kept} for row in rows]
    for stored in (batch.to_pylist(), pq.read_table(path).to_pylist(), json.loads(json.dumps(rows))):
        assert [{name: row[name] for name in kept} for row in stored] == expected
    assert [asdict(sample) for sample in pickle.loads(pickle.dumps(made))] == [asdict(sample) for sample in made]
    for row, sample in zip(rows, made, strict=True):
        assert (
            sum(row["policy_mask"])
            == sample.completion.policy_tokens
            == fate_row(sample, "trained", None)["policy_tokens"]
        )
        assert row["policy_version"] == min(row["token_policy_versions"] or [row["policy_version"]])


@given(SEEDS, TOLDS, VERSIONS)
def test_a_queue_counts_policy_tokens_and_gives_back_what_it_was_given(
    tmp_path_factory: pytest.TempPathFactory, seed: int, told: list[list[int]], versions: list[int]
) -> None:
    made = samples(seed, told, versions)
    queue = RolloutQueue(settings(tmp_path_factory.mktemp("queue")), Queued())  # type: ignore[arg-type]
    groups = [list(members) for _, members in groupby(made, key=lambda sample: sample.group_id)]
    for now, group in enumerate(groups):
        queue.put(group, now)
    assert queue.tokens == sum(sample.completion.policy_tokens for sample in made)
    assert queue.bytes == sum(sample_bytes(sample) for sample in made)
    assert queue.get(len(groups), 9) == made
    assert queue.tokens == 0


def test_a_ledger_takes_trajectories_of_several_versions_as_they_are(tmp_path: Path) -> None:
    made = samples(5, [[2], [2, 1], []], [0, 1, 2])
    assert len({tuple(sample.completion.versions or ()) for sample in made}) > 1
    with LedgerWriter(tmp_path / "streams", "main", "run/cell") as writer:
        writer.accept_batch(rows_of(made))
    compact(tmp_path / "streams", tmp_path / "ledger", CELL_ID)
    stored = read_cell(tmp_path / "ledger", CELL_ID).table("rollouts").to_pylist()
    assert [row["token_policy_versions"] for row in stored] == [sample.completion.versions for sample in made]
    assert [row["behavior_logprobs"] for row in stored] == [sample.completion.logprobs for sample in made]


def test_only_groups_of_one_turn_are_whole_with_their_first() -> None:
    whole: dict[int, list[Completion]] = {}
    answer = conduct(asked([[2], [], [1, 1], []]), Parrot(random.Random(1), [0]).serve, whole.__setitem__)
    assert whole == {1: answer.groups[1], 3: answer.groups[3]}


@given(SEEDS, TOLDS, VERSIONS)
def test_a_checkpoints_queue_gives_back_what_it_was_given(
    seed: int, told: list[list[int]], versions: list[int]
) -> None:
    made = samples(seed, told, versions)
    for sample in made:
        sample.old = [value if value is None else value - 0.5 for value in sample.completion.logprobs]
    groups = [list(members) for _, members in groupby(made, key=lambda sample: sample.group_id)]
    assert from_lines(to_lines(groups), asked(told).prompts) == groups


def test_an_engine_is_sized_for_the_last_turn() -> None:
    prompts = asked([[2, 3], []]).prompts
    assert longest_prompt(prompts, 5) == 1 + 5 + 2 + 5 + 3
    assert longest_prompt(prompts[1:], 5) == 2
