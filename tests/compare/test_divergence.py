"""Where two histories first differ, on hand-made ledgers."""

from pathlib import Path
from typing import Any

import pytest

from harness.compare.divergence import divergence
from tests.measure.deaths import dead_cell
from tests.measure.loops import STEPS, loop_cell


def test_a_run_that_died_and_went_on_has_the_history_of_one_that_did_not(tmp_path: Path) -> None:
    left = loop_cell(tmp_path / "a", updates={step: {"loss": 1.0} for step in (2, 3)})
    found = divergence(left, dead_cell(tmp_path / "b"))
    assert found.first is None
    assert found.steps_alike == STEPS
    assert found.same_samples
    assert found.prompts_skipped == found.prompts_repeated == {}
    assert found.parameters_equal is None


@pytest.mark.parametrize(
    ("changes", "aspect", "values"),
    [
        (
            {"response_tokens": [[7, 7, 8, 7], [7] * 2, [7] * 4, [7] * 6]},
            "sampled tokens",
            ("7 at token 2", "8 at token 2"),
        ),
        ({"reward_total": [0.0, 1.0, 0.5, 1.0]}, "reward", ("1.0", "0.5")),
        (
            {"behavior_logprobs": [[-0.5] * 4, [-0.5] * 2, [-0.5] * 4, [-0.5] * 5 + [-0.25]]},
            "behaviour log-probs",
            ("-0.5 at token 5", "-0.25 at token 5"),
        ),
        ({"verifier_version": ["v2"] * 4}, "verifier version", ("v1", "v2")),
    ],
)
def test_what_differs_first_is_told_with_its_place(
    tmp_path: Path, changes: dict[str, Any], aspect: str, values: tuple[str, str]
) -> None:
    left, right = loop_cell(tmp_path / "a"), loop_cell(tmp_path / "b", changes)
    found = divergence(left, right)
    assert found.first is not None
    assert (found.first.step, found.first.aspect, (found.first.left, found.first.right)) == (0, aspect, values)
    assert found.steps_alike == 0
    assert found.same_samples


def test_the_earliest_step_comes_before_the_earliest_cause(tmp_path: Path) -> None:
    left = loop_cell(tmp_path / "a")
    right = loop_cell(tmp_path / "b", updates={1: {"grad_norm": 2.0}, 2: {"learning_rate": 0.5}})
    found = divergence(left, right).first
    assert found is not None
    assert (found.step, found.aspect, found.left, found.right) == (1, "gradient norm", "1.0", "2.0")


def test_samples_that_only_one_trained_on(tmp_path: Path) -> None:
    left, right = loop_cell(tmp_path / "a", steps=3), loop_cell(tmp_path / "b", steps=2)
    found = divergence(left, right)
    assert found.missing == ["p0.b2.g0", "p0.b2.g1", "p1.b2.g0", "p1.b2.g1"]
    assert found.extra == []
    assert found.prompts_skipped == {"p0": 1, "p1": 1}
    assert found.first is not None
    assert (found.first.step, found.first.aspect, found.first.right) == (2, "batch", "not there")
    assert divergence(right, left).extra == found.missing


def test_equal_parameters_are_equal_hashes(tmp_path: Path) -> None:
    cells = [loop_cell(tmp_path / name, notes={"final_parameter_sha256": name}) for name in ("aa", "bb")]
    assert divergence(cells[0], cells[1]).parameters_equal is False
    assert divergence(cells[0], cells[0]).parameters_equal is True
