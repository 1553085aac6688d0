"""Each claim about how near verl comes, on values that its objects could hold."""

from typing import Any

import pytest
import yaml

from adapters.verl.fidelity import fidelity_rows
from harness.execute.adapter import Fidelity
from tests.fakes import ROOT

TASK: dict[str, Any] = yaml.safe_load((ROOT / "conf/task/arithmetic.yaml").read_text(encoding="utf-8"))
HELD: dict[str, Any] = {
    key: value for key, value in TASK.items() if key not in ("problems", "min_p", "mask_truncated")
} | {
    "advantage_eps": 1e-6,
    "verl.strategy": "fsdp2",
    "verl.autocast": "float32",
    "verl.clip_ratio_c": 1e6,
    "verl.bypass_mode": False,
    "verl.loss_agg_mode": "token-mean",
    "verl.shuffle": False,
    "verl.optimizer": "AdamW",
    "verl.weight_dtype": "float32",
    "verl.ignore_eos": False,
}


def rows(task: dict[str, Any] | None = None, track: str = "free", **held: Any) -> dict[str, Fidelity]:
    cell = {"task": TASK | (task or {}), "track": track}
    return {row.setting: row for row in fidelity_rows(cell, HELD | (task or {}) | held)}


def test_there_is_one_row_for_each_setting_and_one_for_the_track() -> None:
    assert list(rows()) == [*TASK, "track"]


def test_all_is_exact_as_the_task_stands_but_the_epsilon_that_verl_writes_in_its_source() -> None:
    assert {name for name, row in rows().items() if row.grade != "exact"} == {"advantage_eps"}
    assert rows()["advantage_eps"].in_force == 1e-6


@pytest.mark.parametrize(
    ("setting", "task", "held", "grade"),
    [
        ("std_ddof", {"std_ddof": 0}, {"std_ddof": 1}, "unsupported"),
        ("std_ddof", {"std_ddof": 0, "advantage_std": "none"}, {}, "exact"),
        ("min_p", {"min_p": 0.1}, {"min_p": 0.0}, "unsupported"),
        ("mask_truncated", {"mask_truncated": True}, {"mask_truncated": False}, "unsupported"),
        ("clip_high", {}, {"verl.clip_ratio_c": 3.0}, "approximated"),
        ("precision", {}, {"precision": "bfloat16"}, "approximated"),
        ("precision", {"precision": "bfloat16"}, {}, "approximated"),
        ("minibatches", {"minibatches": 4}, {}, "approximated"),
        ("minibatches", {"minibatches": 4}, {"verl.shuffle": True}, "approximated"),
        ("lr_schedule", {"lr_schedule": "cosine"}, {}, "exact"),
        ("lr_schedule", {"lr_schedule": "cosine", "inner_epochs": 2}, {}, "approximated"),
        ("weight_decay", {"weight_decay": 0.1}, {}, "exact"),
        ("weight_decay", {"weight_decay": 0.1}, {"verl.strategy": "megatron"}, "approximated"),
        ("group_size", {}, {"group_size": 4}, "approximated"),
        ("kl_beta", {"kl_beta": 0.1}, {}, "exact"),
        ("top_p", {"top_p": 0.9}, {}, "exact"),
    ],
)
def test_the_grade_of_a_setting(setting: str, task: dict[str, Any], held: dict[str, Any], grade: str) -> None:
    assert rows(task, **held)[setting].grade == grade


@pytest.mark.parametrize(
    ("setting", "task", "held", "word"),
    [
        ("top_p", {"top_p": 0.9}, {}, "temperature alone"),
        ("clip_low", {}, {"verl.bypass_mode": True}, "bypass_mode"),
        ("clip_low", {}, {}, "recomputes"),
        ("minibatches", {"minibatches": 4}, {}, "split between two"),
        ("loss", {}, {}, "tokens of each optimizer step"),
        ("loss", {"loss": "sequence_mean"}, {"verl.loss_agg_mode": "seq-mean-token-mean"}, "completions of each"),
    ],
)
def test_the_note_says_what_to_know(setting: str, task: dict[str, Any], held: dict[str, Any], word: str) -> None:
    assert word in rows(task, **held)[setting].note


def test_a_setting_that_was_not_read_back_is_not_taken_for_granted() -> None:
    cell = {"task": TASK, "track": "free"}
    held = {key: value for key, value in HELD.items() if key != "temperature"}
    row = next(row for row in fidelity_rows(cell, held) if row.setting == "temperature")
    assert (row.grade, row.in_force) == ("unsupported", None)


def test_fixed_length_is_exact_where_the_end_of_sequence_does_not_stop() -> None:
    assert rows(track="fixed_length", **{"verl.ignore_eos": True})["track"].grade == "exact"
    assert rows(track="fixed_length")["track"].grade == "unsupported"
    assert rows()["track"].in_force == "free"
