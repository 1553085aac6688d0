from typing import Any

import pytest

from adapters.openrlhf.shape import Shape, misfit, queue_size, shape_of
from tests.adapters.openrlhf.cells import cell_of


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ({}, Shape(1, 1, 1, 1)),
        ({"options": {"engines": 2, "trainer_ranks": 2}}, Shape(2, 1, 2, 1)),
        ({"profile": "one_gpu", "layout": "colocated_sync"}, Shape(1, 1, 1, 1)),
        ({"profile": "multi_gpu", "layout": "colocated_sync"}, Shape(8, 1, 8, 1)),
        (
            {"profile": "multi_gpu", "layout": "colocated_sync", "options": {"engine_parallel": 4}},
            Shape(8, 1, 2, 4),
        ),
        ({"profile": "multi_gpu", "options": {"engine_parallel": 2}}, Shape(4, 1, 2, 2)),
        (
            {"profile": "multi_gpu", "options": {"engines": 2, "engine_parallel": 2, "trainer_parallel": 2}},
            Shape(4, 2, 2, 2),
        ),
    ],
)
def test_who_gets_which_devices(cell: dict[str, Any], expected: Shape) -> None:
    assert shape_of(cell_of(**cell)) == expected


@pytest.mark.parametrize(
    ("lag_bound", "minibatches", "inner_epochs", "expected"), [(2, 1, 1, 2), (4, 2, 1, 2), (5, 2, 2, 1), (3, 2, 2, 0)]
)
def test_a_bound_in_updates_is_a_queue_of_batches(
    lag_bound: int, minibatches: int, inner_epochs: int, expected: int
) -> None:
    cell = cell_of(
        layout="disaggregated_async", lag_bound=lag_bound, minibatches=minibatches, inner_epochs=inner_epochs
    )
    assert queue_size(cell) == expected


@pytest.mark.parametrize(
    "cell",
    [
        {},
        {"layout": "disaggregated_async"},
        {"layout": "disaggregated_async", "options": {"partial_rollout": True}},
        {"layout": "colocated_sync", "profile": "one_gpu"},
        {"profile": "multi_gpu"},
        {"profile": "multi_gpu", "options": {"engines": 1}, "prompts_per_batch": 7},
    ],
)
def test_what_it_can(cell: dict[str, Any]) -> None:
    assert misfit(cell_of(**cell)) is None


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ({"layout": "colocated_overlap"}, "OpenRLHF has no layout colocated_overlap"),
        ({"loss": "other"}, "OpenRLHF has no loss other; it has token_mean, sequence_mean"),
        ({"advantage_std": "batch"}, "OpenRLHF has no advantage_std batch"),
        ({"precision": "float16"}, "OpenRLHF has no precision float16"),
        ({"options": {"zero_stage": 4}}, "OpenRLHF has no zero_stage 4; it has 0, 1, 2, 3"),
        ({"group_size": 1}, "refuses groups of one"),
        ({"options": {"partial_rollout": True}}, "adapter.partial_rollout needs an asynchronous layout"),
        ({"layout": "disaggregated_async", "lag_bound": 0}, "layout.lag_bound=0 is below 1"),
        ({"layout": "disaggregated_async", "lag_bound": 3, "steps": 4, "minibatches": 4}, "lag_bound=3 is below 4"),
        ({"layout": "colocated_sync"}, "needs a GPU"),
        ({"profile": "one_gpu"}, "has 1 devices: 0 engines of 1 generate there"),
        ({"profile": "one_gpu", "options": {"engines": 2}}, "0 trainers are left"),
        ({"profile": "multi_gpu", "layout": "colocated_sync", "options": {"engine_parallel": 3}}, "does not divide"),
        ({"profile": "multi_gpu", "options": {"engines": 1, "trainer_parallel": 2}}, "does not divide 7 trainers"),
        ({"profile": "multi_gpu", "options": {"engines": 1}}, " x 7 trainers = 7 does not divide 16 completions"),
        ({"steps": 5, "minibatches": 2}, "task.steps=5 is no multiple of the 2 steps"),
    ],
)
def test_what_it_cannot_do_is_one_line(cell: dict[str, Any], reason: str) -> None:
    found = misfit(cell_of(**cell))
    assert found is not None
    assert reason in found
    assert "\n" not in found
