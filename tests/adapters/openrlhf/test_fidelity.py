from typing import Any

import pytest

from adapters.openrlhf.fidelity import fidelity_rows
from adapters.openrlhf.held import STD_DDOF, STD_EPS
from harness.execute.adapter import Fidelity
from harness.execute.fidelity import CHECKED_BY_HARNESS
from tests.adapters.openrlhf.cells import cell_of

OWN: dict[str, Any] = {
    "openrlhf.ignore_eos": False,
    "openrlhf.zero_stage": 2,
    "openrlhf.correction": "off",
    "openrlhf.policy_loss_type": "ppo",
    "openrlhf.dual_clip": None,
}


def rows_of(held: dict[str, Any] | None = None, track: str = "free", **task: Any) -> dict[str, Fidelity]:
    """Rows of a cell whose every setting is in force but for what `held` says."""
    cell = cell_of(track=track, **task)
    inside = {name: value for name, value in cell["task"].items() if name not in CHECKED_BY_HARNESS}
    constants = {"std_ddof": STD_DDOF, "advantage_eps": STD_EPS, "mask_truncated": False}
    return {row.setting: row for row in fidelity_rows(cell, inside | constants | OWN | (held or {}))}


def test_every_setting_has_a_row_in_the_tasks_order() -> None:
    assert list(rows_of()) == [*cell_of()["task"], "track"]


def test_the_usual_task_is_exact_but_for_a_constant_of_the_source() -> None:
    graded = {name: row.grade for name, row in rows_of().items() if row.grade != "exact"}
    assert graded == {"advantage_eps": "approximated"}
    assert rows_of()["advantage_eps"].in_force == 1e-9


@pytest.mark.parametrize(
    ("setting", "task", "held", "grade", "said"),
    [
        ("std_ddof", {"std_ddof": 0}, {}, "unsupported", "n - 1"),
        ("std_ddof", {"std_ddof": 0, "advantage_std": "none"}, {}, "exact", "not used"),
        ("mask_truncated", {"mask_truncated": True}, {}, "unsupported", "not leave it out"),
        ("weight_decay", {"weight_decay": 0.1}, {}, "approximated", "biases"),
        ("precision", {}, {"precision": "bfloat16"}, "approximated", "no other"),
        ("precision", {"precision": "bfloat16"}, {}, "exact", "float32 copy"),
        ("loss", {}, {"openrlhf.correction": "token"}, "approximated", "multiplies it by the ratio"),
        ("top_k", {"top_k": 5}, {}, "exact", "no flag"),
        ("kl_beta", {"kl_beta": 0.1}, {}, "exact", "k3"),
        ("kl_beta", {"kl_beta": 0.1, "loss": "sequence_mean"}, {}, "approximated", "mean over tokens"),
        ("clip_low", {}, {"openrlhf.dual_clip": 3.0}, "approximated", "dual clip 3.0"),
        ("minibatches", {"minibatches": 2}, {}, "exact", "at random"),
        ("learning_rate", {}, {"learning_rate": 1e-6}, "approximated", "another value"),
        ("lr_schedule", {}, {"lr_schedule": "constant after a warm-up of 0.03"}, "approximated", "another value"),
        ("track", {}, {"openrlhf.ignore_eos": True}, "exact", "ignore_eos"),
    ],
)
def test_what_differs_is_graded_and_said(
    setting: str, task: dict[str, Any], held: dict[str, Any], grade: str, said: str
) -> None:
    track = "fixed_length" if setting == "track" else "free"
    row = rows_of(held, track, **task)[setting]
    assert row.grade == grade
    assert said in row.note


def test_a_fixed_length_that_was_not_in_force_is_unsupported() -> None:
    row = rows_of(track="fixed_length")["track"]
    assert (row.in_force, row.grade) == ("free", "unsupported")
