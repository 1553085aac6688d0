"""Throughputs, groups, informative updates and cost of the hand-made loop."""

import math
from pathlib import Path

import pytest

from harness.measure.values import Value
from tests.measure.loops import PRICE, figures, loop_cell

Figures = dict[str, Value]
WALL = 0.295
TOKENS = 16


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    return figures(loop_cell(tmp_path_factory.mktemp("loop"), notes={"device_count": 2}))


@pytest.mark.parametrize(
    ("tag", "work", "stage_seconds"),
    [
        ("input_tokens_per_second", 3 * 6, 3 * 0.010),
        ("output_tokens_per_second", 3 * TOKENS, 3 * 0.050),
        ("rollouts_per_second", 12, 3 * 0.050),
        ("verified_outcomes_per_second", 12, 3 * 0.010),
        ("training_tokens_per_second", 3 * TOKENS, 3 * 0.020),
        ("groups_per_second", 6, 3 * 0.050),
        ("informative_groups_per_second", 3, 3 * 0.050),
    ],
)
def test_throughput_over_three_clocks(found: Figures, tag: str, work: float, stage_seconds: float) -> None:
    assert found[tag].value == pytest.approx(work / WALL)
    assert found[f"{tag}_per_device"].value == pytest.approx(work / WALL / 2)
    assert found[f"{tag}_in_stage"].value == pytest.approx(work / stage_seconds)
    for name in (tag, f"{tag}_per_device", f"{tag}_in_stage"):
        assert found[name].numerator == work, "a throughput's numerator can be counted again"


def test_optimizer_steps_are_counted_by_the_hour(found: Figures) -> None:
    assert found["optimizer_steps_per_hour"].value == pytest.approx(3 / WALL * 3600)
    assert found["optimizer_steps_per_hour_in_stage"].value == pytest.approx(3 / 0.075 * 3600)


def test_decode_alone_leaves_out_the_first_tokens(found: Figures) -> None:
    assert found["decode_tokens_per_second"].value == pytest.approx(3 * (TOKENS - 4) / (3 * 0.040))


def test_groups(found: Figures) -> None:
    assert found["degenerate_fraction"].value == 0.5
    rate, informative = found["groups_per_second"], found["informative_groups_per_second"]
    assert rate.value is not None
    assert informative.value == pytest.approx(rate.value * (1 - 0.5))


def test_a_group_with_a_verifier_error_is_neither_degenerate_nor_informative(tmp_path: Path) -> None:
    changes = {
        "reward_total": [0.0, 1.0, None, 1.0],
        "group_complete": [True, True, False, False],
        "status": ["ok", "ok", "infrastructure_error", "ok"],
        "reward": [{"correctness": 0.0}, {"correctness": 1.0}, {}, {"correctness": 1.0}],
    }
    found = figures(loop_cell(tmp_path, changes))
    assert found["degenerate_fraction"].value == 0.0
    assert found["groups_per_second"].numerator == 3
    assert found["verified_outcomes_per_second"].numerator == 9
    assert found["rollouts_per_second"].numerator == 12
    assert found["infrastructure_error_share"].value == 0.25
    assert found["reward"].value == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("updates", "informative"),
    [
        ({}, 3),
        ({1: {"grad_norm": 0.0}}, 2),
        ({1: {"grad_norm": math.inf}}, 2),
        ({0: {"grad_norm": 0.0}}, 3),
        ({3: {"applied": False, "policy_version_after": 3}}, 2),
    ],
)
def test_informative_updates_and_their_cost(
    tmp_path: Path, updates: dict[int, dict[str, float]], informative: int
) -> None:
    found = figures(loop_cell(tmp_path, updates=updates, notes={"device_count": 2}))
    assert found["informative_updates"].value == informative
    assert found["cost_device_seconds"].value == pytest.approx(2 * WALL / informative)
    money = found["cost_money"]
    assert money.value == pytest.approx(2 * WALL / informative / 3600 * 3.6)
    assert money.unit == "EUR"
    assert PRICE["date"] in money.evidence


def test_no_informative_group_makes_an_infinite_cost(tmp_path: Path) -> None:
    found = figures(loop_cell(tmp_path, {"reward_total": [1.0, 1.0, 0.0, 0.0]}))
    assert found["degenerate_fraction"].value == 1.0
    assert found["informative_updates"].value == 0
    assert found["informative_groups_per_second"].value == 0.0
    for tag in ("cost_device_seconds", "cost_money"):
        assert found[tag].value == math.inf
        assert found[tag].reason


def test_without_a_gradient_norm_or_a_price_the_cost_is_unknown_not_zero(tmp_path: Path) -> None:
    found = figures(loop_cell(tmp_path, updates={2: {"grad_norm": None}}), price=PRICE | {"amount": None})
    assert found["informative_updates"].value is None
    assert "gradient norm" in str(found["informative_updates"].reason)
    assert found["cost_device_seconds"].value is None
    assert "price" in str(found["cost_money"].reason)


def test_training_figures(found: Figures) -> None:
    assert found["grad_norm"].value == 1.0
    assert found["loss"].value is None
    assert found["padding_fraction"].value == pytest.approx(8 / (12 + TOKENS + 8))


def test_reward_of_the_first_and_the_last_quarter_of_the_run(tmp_path: Path) -> None:
    found = figures(loop_cell(tmp_path))
    assert found["reward"].value == 0.75
    assert found["reward_first_quarter"].value == 0.75
    assert found["reward_last_quarter"].value == 0.75
