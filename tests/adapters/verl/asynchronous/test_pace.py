from typing import Any

import pytest

from adapters.verl.asynchronous.overrides import mode_overrides
from adapters.verl.asynchronous.pace import MODES, misfit, mode_of, pace_of

LAYOUT_OF = {mode: layout for layout, modes in MODES.items() for mode in modes}


def cell(mode: str | None = None, layout: str | None = None, **changed: Any) -> dict[str, Any]:
    """A cell of that mode; `changed` are settings of the task, the layout's `lag_bound`, or options of the adapter."""
    task = {"steps": 12, "prompts_per_batch": 8, "group_size": 4, "minibatches": 1, "inner_epochs": 1}
    options: dict[str, Any] = {
        "mode": mode,
        "parameter_sync_step": 1,
        "warmup_batches": None,
        "staleness_threshold": None,
        "off_policy": "drop",
        "partial_rollout": True,
        "old_logprobs": "recompute",
        "replicas": 1,
        "checkpoint": {"every": 0},
    }
    bound = changed.pop("lag_bound", 2)
    task |= {key: value for key, value in changed.items() if key in task}
    options |= {key: value for key, value in changed.items() if key in options}
    return {
        "directory": "/run/cell",
        "layout": {"name": layout or LAYOUT_OF[mode or "sync"], "lag_bound": bound},
        "adapter_options": options,
        "task": task,
        "profile": {"device": "cpu", "devices": 1},
    }


def test_a_layout_has_its_mode_and_another_is_refused_in_one_line() -> None:
    assert mode_of(cell(layout="disaggregated_async")) == "separate_async"
    assert mode_of(cell(layout="colocated_async")) == "colocate_async"
    assert misfit(cell("fully_async")) is None
    assert misfit(cell("fully_async", "colocated_async")) == (
        "verl's mode fully_async does not fit the layout colocated_async, which has colocate_async"
    )
    assert "verl has no layout disaggregated_sync" in str(misfit(cell(layout="disaggregated_sync")))


@pytest.mark.parametrize("bound", range(9))
@pytest.mark.parametrize("per_sync", [1, 2, 3])
@pytest.mark.parametrize("minibatches", [1, 2])
@pytest.mark.parametrize("mode", ["colocate_async", "separate_async", "fully_async", "one_step_off"])
def test_no_mode_is_set_to_run_further_ahead_than_the_layout_allows(
    mode: str, minibatches: int, per_sync: int, bound: int
) -> None:
    asked = cell(mode, lag_bound=bound, minibatches=minibatches, parameter_sync_step=per_sync)
    if misfit(asked) is None:
        pace = pace_of(asked)
        assert pace.lag_bound is None or pace.lag_bound <= bound
        oldest = pace.staleness if mode == "fully_async" else (pace.age or 1) - 1
        last_batch = (pace.batches_per_sync - 1) * pace.updates_per_batch
        assert oldest * pace.updates_per_sync + last_batch <= bound


def test_an_age_is_counted_in_hand_overs_of_weights() -> None:
    pace = pace_of(cell("separate_async", lag_bound=5, parameter_sync_step=2))
    assert (pace.age, pace.warmup, pace.lag_bound) == (3, 2, 5)
    assert (pace.updates_per_sync, pace.prompts_per_sync) == (2, 16)
    assert pace_of(cell("colocate_async", lag_bound=5, minibatches=2)).age == 3


def test_a_mode_that_is_always_behind_needs_a_bound_that_allows_it() -> None:
    assert misfit(cell("one_step_off", lag_bound=1)) is None
    refused = misfit(cell("one_step_off", lag_bound=0))
    assert refused == "verl's one_step_off is up to 1 optimizer steps behind as set, which layout.lag_bound=0 forbids"
    assert "is up to 3" in str(misfit(cell("separate_async", parameter_sync_step=4)))


def test_a_run_that_verl_could_not_end_is_refused() -> None:
    refused = misfit(cell("separate_async", steps=7, parameter_sync_step=2))
    assert refused is not None
    assert "task.steps=7 is no multiple of the 2 optimizer steps" in refused


def test_a_mode_that_loses_what_is_under_way_is_not_resumed() -> None:
    kept = {"checkpoint": {"every": 2}}
    assert "loses what is under way" in str(misfit(cell("fully_async", **kept)))
    assert misfit(cell("separate_async", **kept)) is None


def test_only_a_strict_fully_async_promises_a_bound() -> None:
    strict = pace_of(cell("fully_async", lag_bound=0))
    assert (strict.staleness, strict.lag_bound) == (0, 0)
    assert pace_of(cell("fully_async")).lag_bound is None
    assert pace_of(cell("fully_async", staleness_threshold=0.5)).staleness == 0.5


def test_settings_are_verls_own_for_the_mode() -> None:
    assert mode_overrides(cell("sync")) == {}
    separate = mode_overrides(cell("separate_async", parameter_sync_step=2, lag_bound=3))
    assert separate["data.train_batch_size"] == 16
    assert separate["trainer.total_training_steps"] == 6
    assert separate["trainer.v1.sampler.max_off_policy_threshold"] == 2
    assert separate["actor_rollout_ref.rollout.checkpoint_engine.backend"] == "shared_file"
    fully = mode_overrides(cell("fully_async", minibatches=2))
    assert fully["rollout.total_rollout_steps"] == 6 * 8
    assert fully["async_training.require_batches"] == 2
    assert "actor_rollout_ref.hybrid_engine" not in mode_overrides(cell("colocate_async"))


def test_a_gpu_takes_verls_own_transport_and_leaves_ours_alone() -> None:
    asked = cell("separate_async") | {"profile": {"device": "cuda", "devices": 4}}
    settings = mode_overrides(asked)
    assert settings["actor_rollout_ref.rollout.checkpoint_engine.backend"] == "nccl"
    assert settings["trainer.n_gpus_per_node"] == 3
    assert not any("adapters.verl.cpu" in str(value) for value in settings.values())
