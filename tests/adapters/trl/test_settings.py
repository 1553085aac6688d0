from pathlib import Path
from typing import Any

import pytest

from adapters.trl.batch import order_of_prompts
from adapters.trl.settings import generated_batches, grpo_arguments, loss_type
from tests.adapters.trl.cells import TASK, cell_of


@pytest.mark.parametrize(
    ("loss", "minibatches", "micro_batches", "expected"),
    [
        ("token_mean", 1, 1, "dapo"),
        ("token_mean", 1, 4, "dapo"),
        ("token_mean", 2, 1, "bnpo"),
        ("token_mean", 2, 2, "dapo"),
        ("sequence_mean", 2, 2, "grpo"),
    ],
)
def test_the_loss_is_a_token_mean_wherever_trl_has_one(
    loss: str, minibatches: int, micro_batches: int, expected: str
) -> None:
    assert loss_type(TASK | {"loss": loss, "minibatches": minibatches, "micro_batches": micro_batches}) == expected


def test_the_worked_example_of_lag() -> None:
    """steps_per_generation 4, num_iterations 2, gradient accumulation 2: lag 0 to 3."""
    settings: dict[str, Any] = {"minibatches": 2, "micro_batches": 2, "inner_epochs": 2}
    arguments = grpo_arguments(cell_of(Path("cell"), **settings))
    assert (arguments["steps_per_generation"], arguments["num_iterations"]) == (4, 2)
    assert arguments["gradient_accumulation_steps"] == 2
    assert arguments["per_device_train_batch_size"] * arguments["steps_per_generation"] == 16


@pytest.mark.parametrize(("steps", "expected"), [(8, 2), (9, 3), (1, 1)])
def test_the_last_batch_may_be_used_in_part(steps: int, expected: int) -> None:
    assert generated_batches(TASK | {"steps": steps, "minibatches": 2, "inner_epochs": 2}) == expected


def test_prompts_go_round_in_file_order() -> None:
    assert order_of_prompts(TASK, 3, 10) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]


@pytest.mark.parametrize(("track", "expected"), [("free", None), ("fixed_length", {"min_new_tokens": 6})])
def test_a_fixed_length_is_had_by_a_minimum(track: str, expected: dict[str, int] | None) -> None:
    assert grpo_arguments(cell_of(Path("cell"), track=track))["generation_kwargs"] == expected


def test_vllm_has_another_name_for_the_minimum() -> None:
    cell = cell_of(Path("cell"), track="fixed_length", profile="one_gpu", options={"engine": "vllm"})
    assert grpo_arguments(cell)["generation_kwargs"] == {"min_tokens": 6}
