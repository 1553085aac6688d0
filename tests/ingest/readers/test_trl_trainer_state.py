"""TRL's trainer state: the facts of real ones, the numbers that only this JSON has, and files that are cut."""

import io
import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ingest.keymap import key_map
from harness.ingest.readers.trl_trainer_state import TrlTrainerState
from harness.ingest.reading import Block
from tests import DATA

LOGS = DATA / "real_logs" / "trl"
OLD, AT_400, AT_500 = (
    "trainer_state_trl0.14_unsloth_2025-02_250entries.json",
    "trainer_state_trl0.2x_checkpoint400_2026-02.json",
    "trainer_state_trl0.2x_checkpoint500_2026-02.json",
)
EXCERPTS = "trainer_state_vllm_sampling_excerpts.json"
READER = TrlTrainerState()
Read = tuple[list[Block], list[tuple[int, str]]]


def of_text(text: bytes) -> Read:
    warnings: list[tuple[int, str]] = []
    return list(READER.blocks(io.BytesIO(text), lambda *told: warnings.append(told))), warnings


def entries(name: str) -> list[Block]:
    found, warnings = of_text((LOGS / name).read_bytes())
    assert warnings == []
    return [block for block in found if block.kind == "training"]


@pytest.mark.parametrize(
    ("name", "steps"),
    [(OLD, range(1, 251)), (AT_400, range(10, 401, 10)), (AT_500, range(10, 501, 10))],
)
def test_every_entry_once_with_its_step(name: str, steps: range) -> None:
    assert [block.step for block in entries(name)] == list(steps)
    assert READER.recognises((LOGS / name).read_bytes(), name) is not None


def test_numbers_are_those_that_json_reads() -> None:
    for name in (OLD, AT_400, AT_500):
        history = json.loads((LOGS / name).read_text())["log_history"]
        assert [block.values | {"step": block.step} for block in entries(name)] == history


def test_lines_are_those_of_the_file() -> None:
    text = (LOGS / AT_500).read_text().splitlines()
    assert all(text[block.line - 1].strip() == "{" for block in entries(AT_500))


def test_a_later_checkpoint_begins_with_the_earlier_one() -> None:
    earlier, later = entries(AT_400), entries(AT_500)
    assert later[: len(earlier)] == earlier
    assert (len(earlier), len(later)) == (40, 50)


def test_num_tokens_is_cumulative_and_has_the_prompts() -> None:
    by_step = {block.step: block.values for block in entries(AT_500)}
    added = by_step[20]["num_tokens"] - by_step[10]["num_tokens"]
    assert added == 83_206
    of_prompt = 1 - 160 * by_step[20]["completions/mean_length"] / added
    assert of_prompt == pytest.approx(0.76, abs=0.005)


def test_a_length_of_zero_means_that_none_ended() -> None:
    values = {block.step: block.values for block in entries(AT_500)}[230]
    assert values["completions/clipped_ratio"] == 1.0
    assert values["completions/mean_terminated_length"] == 0.0
    meaning = key_map("trl").meaning("completions/mean_terminated_length")
    assert meaning is not None
    assert not meaning.same


def test_entries_without_spread() -> None:
    found = entries(OLD)
    assert sum(block.values["reward_std"] == 0 for block in found) == 64
    assert {math.copysign(1, block.values["loss"]) for block in found if block.values["loss"] == 0} == {1, -1}


def test_settings_follow_the_entries() -> None:
    *_, last = of_text((LOGS / AT_500).read_bytes())[0]
    assert (last.kind, last.step) == ("config", None)
    assert last.values == {
        "eval_steps": 500,
        "logging_steps": 10,
        "max_steps": 500,
        "num_train_epochs": 1,
        "save_steps": 100,
        "train_batch_size": 4,
    }


def test_several_heads_in_one_file_are_kept_apart() -> None:
    found, warnings = of_text((LOGS / EXCERPTS).read_bytes())
    assert [(block.scope, block.step) for block in found] == [
        ("", 10),
        ("state 2", 1),
        ("state 3", 1),
        ("state 4", 1),
        ("state 5", 1),
    ]
    assert [line for line, _ in warnings] == [9, 12, 15, 18]
    assert found[0].values["sampling/importance_sampling_ratio/mean"] == pytest.approx(0.4647279143333435)
    assert found[0].values["completions/max_length"] == 2827.7  # a mean of the largest ones
    assert found[1].values["epoch"] == 1e-05
    timers = found[4].values
    nested = sum(timers[f"timer/{part}"] for part in ("generate", "get_reward", "active_model_forward"))
    assert timers["timer/calc_advantages"] == pytest.approx(nested, rel=0.05)


@pytest.mark.parametrize("name", [OLD, AT_500, EXCERPTS])
def test_every_key_of_real_states_is_known(name: str) -> None:
    found, _ = of_text((LOGS / name).read_bytes())
    known = key_map("trl")
    assert {key for block in found for key in block.values if known.meaning(key) is None} == set()


def state(*history: object, **rest: object) -> bytes:
    return json.dumps({"log_history": history, **rest}).encode()


def test_the_end_of_training_and_evaluations_are_no_steps() -> None:
    found, _ = of_text(
        state(
            {"loss": 0.1, "reward": 1, "step": 5},
            {"eval_loss": 0.1, "eval_reward": 1, "epoch": 1, "step": 5},
            {"train_runtime": 9.5, "train_loss": 0.1, "reward": 2, "epoch": 1, "step": 5},
        )
    )
    assert [(block.kind, block.step) for block in found] == [("training", 5), ("validation", 5), ("summary", 5)]


def test_nan_and_infinity_are_numbers_and_null_is_none() -> None:
    found, warnings = of_text(b'{"log_history": [{"a": NaN, "b": -Infinity, "c": null, "step": 2.0}]}')
    assert repr(found[0].values) == "{'a': nan, 'b': -inf}"
    assert found[0].step == 2
    assert warnings == [(1, "c: null is no number: left out")]


def test_a_number_that_is_too_large_is_no_infinity() -> None:
    assert of_text(state({"step": 10**400, "a": 10**400}))[0][0].values == {}
    assert of_text(b'{"log_history": [{"a": 1e999, "step": 1e999}]}')[0][0].step is None


@pytest.mark.parametrize(
    "text",
    [
        state({"loss": 1.5, "grad_norm": 0.1, "learning_rate": 1e-5, "epoch": 1, "step": 1}),
        state({"eval_accuracy": 0.5, "step": 1}),
        state(),
        b'{"history": [{"reward_std": 0.5}]}',
        b'{"text": "\\"log_history\\": [{\\"reward_std\\": 1}]"}',
        b"",
        b"\xff\x00" * 50,
    ],
)
def test_the_state_of_another_trainer_is_not_taken_for_one(text: bytes) -> None:
    assert READER.recognises(text, "trainer_state.json") is None


def test_what_is_no_entry_is_said_once_and_passed_over() -> None:
    broken = b'{"log_history": [3, "}", {"a": 1 2}, [1], {"a": {"b": 4}, "c": "}]{\\"", "step": 1}, {"d": 5}]}'
    found, warnings = of_text(broken)
    assert [(block.step, block.values) for block in found] == [(1, {"a/b": 4.0}), (None, {"d": 5.0})]
    assert {words for _, words in warnings if "no entry" in words} == {
        "something in log_history is no entry: left out",
        "something in log_history is no entry: left out (1 times more)",
    }


def test_an_entry_without_end_is_given_up() -> None:
    found, warnings = of_text(b'{"log_history": [{"a": 1}, {"b": "' + b"x" * (6 << 20))
    assert [block.values for block in found] == [{"a": 1.0}]
    assert len(warnings) == 1


@pytest.mark.parametrize("size", [1 << 18, 3 << 20])
def test_lists_within_lists_are_looked_through_once(size: int) -> None:
    one = b'{"log_history": ['
    found, warnings = of_text(one * (size // len(one)))
    assert found == []
    assert len(warnings) <= 5


class Slow(io.BytesIO):
    """Gives little at a time, as a pipe does."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(13)


KEYS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(lambda key: key != "step")
ENTRY = st.dictionaries(KEYS, st.floats(), min_size=1, max_size=6)


@given(st.lists(ENTRY, max_size=5), st.sampled_from([None, 2]), st.booleans())
@settings(max_examples=60)
def test_what_is_written_is_read(history: list[dict[str, float]], indent: int | None, ascii_only: bool) -> None:
    text = json.dumps({"log_history": history, "max_steps": 7}, indent=indent, ensure_ascii=ascii_only).encode()
    found = list(READER.blocks(Slow(text), lambda *_: None))
    assert repr([block.values for block in found if block.kind != "config"]) == repr(history)
    assert found[-1].values == {"max_steps": 7.0}


@given(st.binary(max_size=300) | st.text('{}[]",:\\ \n1eNlog_history', max_size=60).map(str.encode))
@settings(max_examples=100)
def test_rubbish_never_raises(rubbish: bytes) -> None:
    READER.recognises(rubbish, "x")
    of_text(rubbish)
    of_text(b'{"log_history": [' + rubbish)
    found, _ = of_text(b'{"log_history": [{"a": 1.5}]}' + rubbish)
    assert found[0].values == {"a": 1.5}


@given(st.integers(0, 4000))
@settings(max_examples=60)
def test_a_file_that_is_cut_gives_what_it_has_whole(at: int) -> None:
    text = Path(LOGS / AT_400).read_bytes()
    part = [block for block in of_text(text[:at])[0] if block.kind == "training"]
    assert part == entries(AT_400)[: len(part)]
    assert len(part) == text[:at].count(b"\n    }")
