"""Reward at equal samples, on a loop whose every reward is known."""

from pathlib import Path

import pytest

from tests.measure.loops import TASK, figures, loop_cell

PLANNED = TASK | {"steps": 4}


def test_parts_are_as_many_samples_as_the_task_plans(tmp_path: Path) -> None:
    """16 samples in batches of 4, each with the rewards 0 1 1 1: the parts end at 3, 6, 9, 12 and 16."""
    found = figures(loop_cell(tmp_path), task=PLANNED)
    curve = {name: (value.value, value.n) for name, value in found.items() if name.startswith("reward_curve")}
    assert curve == {
        "reward_curve[3]": (pytest.approx(2 / 3), 3),
        "reward_curve[6]": (pytest.approx(2 / 3), 3),
        "reward_curve[9]": (pytest.approx(2 / 3), 3),
        "reward_curve[12]": (1.0, 3),
        "reward_curve[16]": (pytest.approx(3 / 4), 4),
    }


def test_a_part_that_was_not_trained_on_has_no_value(tmp_path: Path) -> None:
    found = figures(loop_cell(tmp_path, steps=2), task=PLANNED, warmup_steps=0)
    assert found["reward_curve[6]"].value is not None
    assert found["reward_curve[16]"].value is None
    assert found["reward_curve[16]"].reason == "0 of 4 samples were trained on with a reward"


def test_without_planned_steps_there_are_no_equal_samples(tmp_path: Path) -> None:
    assert figures(loop_cell(tmp_path))["reward_curve"].reason == "the task has no number of steps"
