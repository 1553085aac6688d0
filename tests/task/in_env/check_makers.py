"""Makers for real: the tiny model as it is fitted, any local model, and reasoning-gym's datasets."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from harness.errors import UserError
from harness.task.bundle import Bundle, Prompt
from harness.task.gym import ReasoningGym
from harness.task.makers import hf, tiny
from harness.task.makers.job import Job, make_bundle
from harness.task.turns import join_turns
from harness.task.verifier import Verifier

SUMS: dict[str, Any] = {"name": "arithmetic", "problems": {"count": 256, "seed": 0, "operators": "+", "max_operand": 9}}


def made(folder: Path, task: dict[str, Any], model: dict[str, Any], make: Any = tiny.make) -> Bundle:
    folder.mkdir()
    make_bundle(Job(task, model, folder), make)
    return Bundle.load(folder, verify=True)


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return made(tmp_path_factory.mktemp("bundles") / "sums", SUMS, {"name": "tiny"})


def sampled(bundle: Bundle, count: int) -> list[tuple[str, torch.Tensor, str]]:
    """(prompt id, sampled ids with what follows EOS, text) at temperature 1, `count` prompts."""
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(bundle.model_dir)
    model = AutoModelForCausalLM.from_pretrained(bundle.model_dir, dtype=torch.float32)
    found = []
    for prompt in bundle.prompts[:count]:
        ids = torch.tensor([prompt.token_ids])
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=8)[0, ids.shape[1] :]
        found.append((prompt.prompt_id, out, tokenizer.decode(out, skip_special_tokens=True)))
    return found


def test_about_half_of_the_sampled_answers_are_right_and_end_with_eos(sums: Bundle) -> None:
    assert 0.3 <= sums.facts["meta"]["sampled_accuracy"] <= 0.6
    assert sums.facts["meta"]["informative_groups_of_8"] > 0.5
    found = sampled(sums, 200)
    with Verifier.start(sums, 5.0) as verifier:
        right = (
            sum(verdict.reward_total or 0.0 for verdict in verifier.score([(i, text) for i, _, text in found])) / 200
        )
    assert abs(right - sums.facts["meta"]["sampled_accuracy"]) < 0.12
    assert sum(bool((ids == tiny_eos(sums)).any()) for _, ids, _ in found) / 200 > 0.95


def tiny_eos(bundle: Bundle) -> int:
    return int(AutoTokenizer.from_pretrained(bundle.model_dir).eos_token_id)


def test_the_tiny_model_suits_every_engine(sums: Bundle) -> None:
    model = AutoModelForCausalLM.from_pretrained(sums.model_dir)
    tokenizer = AutoTokenizer.from_pretrained(sums.model_dir)
    config = model.config
    assert config.model_type == "qwen2"
    assert config.hidden_size // config.num_attention_heads == 64
    assert model.lm_head.weight.data_ptr() != model.model.embed_tokens.weight.data_ptr()
    assert tokenizer.eos_token_id != tokenizer.pad_token_id
    assert len(tokenizer) == config.vocab_size
    assert (model.generation_config.temperature, model.generation_config.top_k, model.generation_config.top_p) == (
        1,
        0,
        1,
    )
    assert not list(sums.path.rglob("*.bin"))


def test_a_saved_tokenizer_keeps_every_character(sums: Bundle) -> None:
    tokenizer = AutoTokenizer.from_pretrained(sums.model_dir)
    ids = tokenizer(tiny.CHARACTERS)["input_ids"]
    assert len(ids) == len(set(ids)) == len(tiny.CHARACTERS)
    assert tokenizer.decode(ids) == tiny.CHARACTERS


def test_the_same_settings_make_the_same_checkpoint(sums: Bundle, tmp_path: Path) -> None:
    again = made(tmp_path / "again", SUMS, {"name": "tiny"})
    assert again.hash == sums.hash


def test_any_local_model_becomes_a_bundle(sums: Bundle, tmp_path: Path) -> None:
    copy = made(tmp_path / "copy", SUMS, {"name": "hf", "path": str(sums.model_dir)}, hf.make)
    assert copy.checkpoint_hash == sums.checkpoint_hash
    assert [p.token_ids for p in copy.prompts] == [p.token_ids for p in sums.prompts]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "pickled ones are never loaded"),
        ({"pytorch_model.bin": b"\x80\x04."}, "pickled ones are never loaded"),
        ({"model.safetensors": b"", "config.json": b"{}"}, "does not load as a causal language model"),
    ],
)
def test_a_model_that_does_not_load_is_refused(tmp_path: Path, files: dict[str, bytes], message: str) -> None:
    (tmp_path / "weights").mkdir()
    for name, data in files.items():
        (tmp_path / "weights" / name).write_bytes(data)
    with pytest.raises(UserError, match=message):
        made(tmp_path / "b", SUMS, {"name": "hf", "path": str(tmp_path / "weights")}, hf.make)


@pytest.mark.parametrize("path", ["", "/no/such/folder", "no-such-owner/no-such-model"])
def test_a_missing_model_is_named(tmp_path: Path, path: str) -> None:
    with pytest.raises(UserError, match=r"model\.path"):
        made(tmp_path / "b", SUMS, {"name": "hf", "path": path}, hf.make)


# One with tuples in its entries, one that pays for any answer, one whose rule raises on nonsense, and plain ones.
@pytest.mark.parametrize(
    "dataset", ["arc_agi", "countdown", "prime_factorization", "chain_sum", "game_of_life_halting"]
)
def test_a_dataset_scores_its_own_answers(sums: Bundle, tmp_path: Path, dataset: str) -> None:
    task = {"name": "reasoning_gym", "problems": {"dataset": dataset, "count": 6, "seed": 1}}
    bundle = made(tmp_path / "b", task, {"name": "hf", "path": str(sums.model_dir)}, hf.make)
    with Verifier.start(bundle, 20.0) as verifier:
        verdicts = verifier.score(
            [(prompt.prompt_id, f"<answer>{prompt.answer}</answer>") for prompt in bundle.prompts]
        )
    assert [verdict.reward_total for verdict in verdicts] == [1.0] * 6


@pytest.mark.parametrize(
    ("problems", "message"),
    [
        ({"dataset": "chain_sums"}, "did you mean 'chain_sum'"),
        ({"dataset": "chain_sum", "config": {"foo": 1}}, "does not suit reasoning-gym's chain_sum"),
        ({"dataset": "rubiks_cube"}, "stores no right answer"),
    ],
)
def test_a_dataset_that_cannot_be_used_is_refused(problems: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        ReasoningGym().problems(problems, "prompts", 2)


def test_fit_and_prompts_are_drawn_apart() -> None:
    problems = {"dataset": "chain_sum", "seed": 3}
    prompts, fit = (ReasoningGym().problems(problems, split, 20) for split in ("prompts", "fit"))
    assert [dataclasses.asdict(p) for p in prompts] != [dataclasses.asdict(p) for p in fit]


def test_a_model_of_two_turns_is_right_in_both_about_half_of_the_time(tmp_path: Path) -> None:
    task = {"name": "arithmetic_two_turn", "problems": {"count": 64}}
    bundle = made(tmp_path / "two", task, {"name": "tiny"})
    tokenizer = AutoTokenizer.from_pretrained(bundle.model_dir)
    model = AutoModelForCausalLM.from_pretrained(bundle.model_dir, dtype=torch.float32)
    torch.manual_seed(0)
    said = [(prompt.prompt_id, join_turns(two_turns(model, tokenizer, prompt))) for prompt in bundle.prompts]
    with Verifier.start(bundle, 5.0) as verifier:
        components = [verdict.components for verdict in verifier.score(said)]
    assert 0.3 <= bundle.facts["meta"]["sampled_accuracy"] <= 0.6
    for part in ("first", "second", "correctness"):
        assert 0.2 < sum(component[part] for component in components) / len(components) < 0.95
    assert tokenizer.decode(bundle.prompts[0].observation_ids[0]) == bundle.prompts[0].observations[0]


def two_turns(model: Any, tokenizer: Any, prompt: Prompt) -> list[str]:
    """What the model says in both turns, sampled at temperature 1."""
    ids, said = list(prompt.token_ids), []
    for observation in [*prompt.observation_ids, []]:
        inputs = torch.tensor([ids])
        out = model.generate(inputs, attention_mask=torch.ones_like(inputs), max_new_tokens=5)[0, len(ids) :]
        said.append(tokenizer.decode(out, skip_special_tokens=True))
        ids += [*out.tolist(), *observation]
    return said
