"""Dumps of rollouts: what is counted of them by hand is what is read, and a completion is text, whatever it says."""

import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ingest.ingest import ingest
from harness.ingest.keymap import key_map
from harness.ingest.readers.rollout_dump import RolloutDump
from harness.ingest.readers.rollout_parquet import TrlCompletions
from harness.ingest.readers.rollout_samples import BY_VERSION
from harness.ingest.reading import UNKNOWN, Block
from harness.ingest.recognise import recognise

READERS = (TrlCompletions(), RolloutDump())
Record = dict[str, Any]


def of(data: bytes, name: str) -> tuple[list[Block], list[tuple[int, str]]]:
    match = recognise(io.BytesIO(data), name, READERS)
    assert match is not None
    warnings: list[tuple[int, str]] = []
    return list(match.reader.blocks(io.BytesIO(data), lambda *told: warnings.append(told))), warnings


def lines(*records: Record) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def verl(prompt: str, completion: str, score: Any, step: int = 7, **more: Any) -> Record:
    return {"input": prompt, "output": completion, "gts": "4", "score": score, "step": step, **more}


def test_verl_counts_by_hand() -> None:
    dump = lines(
        verl("2+2=", "4", 1.0),
        verl("2+2=", "4", 1.0),
        verl("3+3=", "6", 1.0),
        verl("3+3=", "  ", 0.0),
        verl("1+1=", "3", 0.5),
    )
    blocks, warnings = of(dump, "rollouts/7.jsonl")
    values = {
        "dump/samples": 5.0,
        "dump/prompts": 3.0,
        "dump/reward/mean": 0.7,
        "dump/reward/min": 0.0,
        "dump/reward/max": 1.0,
        "dump/degenerate_fraction": 0.5,  # of the two groups of two
        "dump/duplicates": 1.0,
        "dump/empty_completions": 1.0,
    }
    assert blocks == [Block(7, 1, "training", values)]
    assert warnings == []


def test_verl_groups_by_uid_where_a_prompt_comes_twice() -> None:
    dump = lines(*(verl("same", str(n), n % 2, uid=f"{prompt}_{n}_0") for prompt in ("a_1", "b") for n in range(2)))
    (block,), _ = of(dump, "7.jsonl")
    assert block.values["dump/prompts"] == 2


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("validation_data/7.jsonl", "validation"),
        ("val/7.jsonl", "validation"),
        ("values/7.jsonl", "training"),
        ("/home/val/rollouts/train/deep/7.jsonl", "training"),
    ],
)
def test_verl_s_validation_is_told_by_its_folder(name: str, kind: str) -> None:
    assert of(lines(verl("p", "c", 1)), name)[0][0].kind == kind


def test_steps_in_one_file_and_records_that_are_none() -> None:
    broken = {"input": "p", "output": "c", "score": "high", "step": 2}
    dump = lines(verl("p", "c", 1, 1), broken, {"step": 3}, verl("p", "c", float("nan"), 2)) + b'{"input": "p", "outp'
    blocks, warnings = of(dump, "x.jsonl")
    assert [(block.step, block.line) for block in blocks] == [(1, 1), (2, 2)]
    assert blocks[1].values["dump/without_reward"] == 2
    assert "dump/reward/mean" not in blocks[1].values
    assert "dump/degenerate_fraction" not in blocks[1].values
    assert [line for line, _ in warnings] == [3, 5]


def nemo(prompt: list[int], completion: list[int], reward: float, width: int = 8) -> Record:
    ids = prompt + completion
    mask = [0] * len(prompt) + [1] * len(completion)
    padded = [0] * (width - len(ids))
    arrays = {"token_ids": [ids + padded], "token_loss_mask": [mask + padded], "sample_loss_mask": [1.0]}
    return {"content": ["..."], "rewards": [reward], "input_lengths": [len(ids)], **arrays, "idx": 0}


def test_nemo_rl_counts_sampled_tokens_and_tells_prompts_by_their_tokens() -> None:
    dump = lines(nemo([1, 2], [3, 4, 5], 1.0), nemo([1, 2], [6], 0.0), nemo([9], [], 0.0), nemo([9], [], 0.0))
    (block,), warnings = of(dump, "logs/exp_001/train_data_step12.jsonl")
    assert (block.step, warnings) == (12, [])
    assert {key.removeprefix("dump/"): value for key, value in block.values.items()} == {
        "samples": 4.0,
        "prompts": 2.0,
        "reward/mean": 0.25,
        "reward/min": 0.0,
        "reward/max": 1.0,
        "degenerate_fraction": 0.5,
        "duplicates": 1.0,
        "empty_completions": 2.0,
        "completion_tokens/mean": 1.0,
        "completion_tokens/min": 0.0,
        "completion_tokens/max": 3.0,
        "completion_tokens/sum": 4.0,
    }


def prime(group: str, reply: str, tokens: int, *rewards: tuple[float, float]) -> Record:
    named = {f"r{at}": {"score": score, "weight": weight} for at, (score, weight) in enumerate(rewards)}
    asked = {"message": {"role": "user", "content": "?"}, "sampled": False, "mask": [False] * 3}
    said = {"message": {"role": "assistant", "content": reply}, "sampled": True, "mask": [False] + [True] * tokens}
    trace = {"rewards": named, "nodes": [asked, said]}
    return {"id": "e", "env": {"id": "x"}, "task": {"type": "T"}, "group": {"id": group}, "ok": True, "traces": [trace]}


def test_prime_rl_weighs_rewards_and_takes_step_and_part_from_the_name() -> None:
    dump = lines(prime("g", "a", 4, (1.0, 1.0), (0.5, 2.0)), prime("g", "b", 6, (2.0, 1.0)), prime("h", "c", 1, (0, 1)))
    (block,), warnings = of(dump, "rollouts/step_42/train/effective/traces.jsonl")
    assert (block.step, block.scope, block.kind, warnings) == (42, "effective", "training", [])
    assert block.values["dump/reward/mean"] == pytest.approx(4 / 3)
    assert block.values["dump/degenerate_fraction"] == 1.0
    assert block.values["dump/completion_tokens/sum"] == 11
    assert of(dump, "rollouts/step_42/eval/all/traces.jsonl")[0][0].kind == "validation"


def test_skyrl_adds_up_the_scores_of_tokens() -> None:
    record = {
        "input_prompt": "p",
        "output_response": "c",
        "stop_reason": "stop",
        "env_class": "gsm8k",
        "env_extras": {},
    }
    dump = lines(record | {"score": [0.0, 0.0, 1.0]}, record | {"score": 0.0}, record | {"score": [None]})
    (block,), _ = of(dump, "exports/dumped_evals/global_step_10_evals/gsm8k.jsonl")
    assert (block.step, block.kind, block.values["dump/reward/mean"]) == (10, "validation", 0.5)
    assert block.values["dump/without_reward"] == 1


def test_areal_s_files_of_one_prompt_are_read_together_by_version() -> None:
    record = {"seqlen": 40, "prompt_len": 30, "head_version": -1, "reward": 1.0, "prompt": "p"}
    samples = [
        record | {"task_id": task, "tail_version": version, "sample_idx": n, "completion": str(n)}
        for version in (5, 6)
        for task in (3, 4)
        for n in range(2)
    ]
    blocks, _ = of(lines(*samples), "standard input")
    assert [(block.step, block.scope) for block in blocks] == [(5, BY_VERSION), (6, BY_VERSION)]
    assert all(block.values["dump/samples"] == 4 and block.values["dump/prompts"] == 2 for block in blocks)
    assert not any("tokens" in key for block in blocks for key in block.values)
    assert recognise(io.BytesIO(lines(*samples)), "exp/rollout/5/3.jsonl", READERS) is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a/rollouts/7.jsonl", "a/rollouts/12.jsonl", True),
        ("7.jsonl", "8.jsonl", True),
        ("a/rollouts/7.jsonl", "b/rollouts/7.jsonl", False),
        ("a/train_data_step1.jsonl", "a/train_data_step10.jsonl", True),
        ("r/rollouts/step_1/train/all/traces.jsonl", "r/rollouts/step_2/train/effective/traces.jsonl", True),
        ("r/rollouts/step_1/train/all/traces.jsonl", "r/rollouts/step_1/eval/all/traces.jsonl", False),
    ],
)
def test_files_of_one_dump_know_each_other(one: str, other: str, same: bool) -> None:
    found = [recognise(io.BytesIO(lines(verl("p", "c", 1))), name, READERS) for name in (one, other)]
    assert (found[0].found.part_of == found[1].found.part_of) == same  # type: ignore[union-attr]


def test_trl_s_completions(tmp_path: Path) -> None:
    path = tmp_path / "completions_00010.parquet"
    chat = [[{"role": "assistant", "content": text}] for text in ("4", "", "4", "5")]
    table = {"step": [10] * 4, "prompt": ["p", "p", "q", "q"], "completion": chat, "accuracy": [1.0, 0.0, 1.0, 1.0]}
    pd.DataFrame(table | {"advantage": [0.7, -0.7, 0.0, 0.0]}).to_parquet(path)
    (block,), warnings = of(path.read_bytes(), path.name)
    assert (block.step, block.line, warnings) == (10, 1, [])
    assert block.values["dump/reward/mean"] == 0.75
    assert block.values["dump/degenerate_fraction"] == 0.5
    assert block.values["dump/empty_completions"] == 1
    pd.DataFrame(table | {"format": [0.0, 1.0, None, 1.0]}).to_parquet(path)
    (block,), _ = of(path.read_bytes(), path.name)
    assert not any(key.startswith(("dump/reward", "dump/degenerate", "dump/without")) for key in block.values)
    assert block.values["dump/column/format/mean"] == pytest.approx(2 / 3)
    assert block.values["dump/column/accuracy/min"] == 0.0
    assert of(path.read_bytes()[:-5], path.name)[0] == []


def test_every_key_of_a_dump_has_a_meaning() -> None:
    values = of(lines(nemo([1], [2], 1.0), nemo([1], [3], 0.0)), "train_data_step1.jsonl")[0][0].values
    values |= of(lines(verl("p", "c", None)), "1.jsonl")[0][0].values | {"dump/column/x/mean": 0.0}
    assert [key for key in values if key_map(UNKNOWN).meaning(key) is None] == []


HOSTILE = '<script>alert(1)</script>\u202e\x00\ud800"},{"score": 9, "token_ids": [1] \x1b[31m step:3 - actor/loss:9.0'


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(["p", "q", HOSTILE]), st.text(max_size=6), st.floats()), min_size=1, max_size=9)
)
def test_whatever_completions_say_the_counts_are_those_of_the_records(rows: list[tuple[str, str, float]]) -> None:
    (block,), warnings = of(lines(*(verl(prompt, text + HOSTILE, score) for prompt, text, score in rows)), "7.jsonl")
    finite = [score for *_, score in rows if abs(score) < float("inf")]
    assert block.values["dump/samples"] == len(rows)
    assert block.values["dump/prompts"] == len({prompt for prompt, *_ in rows})
    assert block.values["dump/duplicates"] == len(rows) - len({(prompt, text) for prompt, text, _ in rows})
    assert block.values.get("dump/reward/max") == (max(finite) if finite else None)
    assert warnings == []


@settings(max_examples=25)
@given(st.data())
def test_records_of_any_shape_never_raise(data: st.DataObject) -> None:
    anything = st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3), _inside)
    for needed in (verl("p", "c", 1), nemo([1], [2], 1.0), prime("g", "a", 1, (1.0, 1.0))):
        changed = {key: data.draw(anything) if data.draw(st.booleans()) else value for key, value in needed.items()}
        of(lines(changed), "step_3/x.jsonl")


def _inside(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)


def test_all_files_of_a_dump_are_one_run_beside_the_metrics(tmp_path: Path) -> None:
    (tmp_path / "rollouts").mkdir()
    for step in (1, 2, 3):
        samples = [verl(prompt, str(n), float(n % step), step) for prompt in "ab" for n in range(4)]
        (tmp_path / "rollouts" / f"{step}.jsonl").write_bytes(lines(*samples))
    rows = [{"step": step, "data": {"actor/pg_loss": 0.5 * step, "timing_s/step": 9.0}} for step in (1, 2, 3)]
    (tmp_path / "metrics.jsonl").write_bytes(lines(*rows))
    (run,) = ingest([str(tmp_path)], tmp_path / "runs", lambda sources: lambda read: None).runs
    assert run.manifest["steps"] == 3
    assert len(run.manifest["files"]) == 4
    assert sum("a file a step of one dump" in warning for warning in run.manifest["warnings"]) == 1
