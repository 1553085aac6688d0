"""What a cell on GPUs is told; verl's own classes check it in `in_env/check_gpu.py`."""

from typing import Any

import pytest

from adapters.verl.gpu.overrides import misfit, trainer_devices, undriven
from adapters.verl.settings import overrides
from tests.adapters.verl.gpu.cells import gpu_cell

ACTOR = "actor_rollout_ref.actor"
ROLLOUT = "actor_rollout_ref.rollout"


def test_all_gpus_train_where_they_are_shared_and_the_rest_where_not() -> None:
    assert trainer_devices(gpu_cell()) == 8
    assert trainer_devices(gpu_cell("disaggregated_async", replicas=3)) == 5


@pytest.mark.parametrize("trainer", ["fsdp2", "megatron"])
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_trainer_and_engine_are_the_ones_asked_for(trainer: str, engine: str) -> None:
    told = overrides(gpu_cell(trainer=trainer, engine=engine))
    assert (told[f"{ACTOR}.strategy"], told[f"{ROLLOUT}.name"]) == (trainer, engine)
    assert (told["trainer.device"], told["trainer.n_gpus_per_node"]) == ("cuda", 8)
    assert not [key for key in told if ".fsdp_config." in key and trainer == "megatron"]


def test_a_forward_pass_is_shared_among_the_gpus() -> None:
    """16 prompts x 8 completions over 8 GPUs are 16 each, in one micro-batch or in two of 8."""
    assert overrides(gpu_cell())[f"{ACTOR}.ppo_micro_batch_size_per_gpu"] == 16
    told = overrides(gpu_cell(task={"micro_batches": 2, "kl_beta": 0.1}))
    sizes = {key: value for key, value in told.items() if "micro_batch_size_per_gpu" in key}
    assert set(sizes.values()) == {8}
    assert "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu" in sizes


def test_megatrons_optimizer_is_told_its_betas_the_way_that_reaches_it() -> None:
    told = overrides(gpu_cell(trainer="megatron", task={"adam_beta2": 0.95}))
    assert told[f"+{ACTOR}.optim.override_optimizer_config.adam_beta2"] == 0.95
    assert f"+{ACTOR}.optim.override_optimizer_config.eps" not in told
    assert f"{ACTOR}.optim.lr_scheduler_type" not in told


def test_an_engine_with_gpus_of_its_own_keeps_its_memory() -> None:
    assert overrides(gpu_cell())[f"{ROLLOUT}.free_cache_engine"] is True
    told = overrides(gpu_cell("disaggregated_async", replicas=3))
    assert told[f"{ROLLOUT}.free_cache_engine"] is False
    assert (told["trainer.n_gpus_per_node"], told[f"{ROLLOUT}.n_gpus_per_node"]) == (5, 3)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (gpu_cell(), None),
        (gpu_cell(trainer="veomni"), "no trainer veomni"),
        (gpu_cell(engine="trtllm"), "no engine trtllm"),
        (gpu_cell("disaggregated_async", profile="one_gpu"), "needs more GPUs"),
        (gpu_cell(trainer="megatron", task={"precision": "float32"}), "no float32"),
        (gpu_cell(engine="sglang") | {"track": "fixed_length"}, "ignore_eos"),
        (gpu_cell(task={"prompts_per_batch": 3, "group_size": 4}), "do not divide among 8 GPUs"),
    ],
)
def test_what_its_gpus_cannot_hold_is_said_in_a_line(cell: dict[str, Any], words: str | None) -> None:
    why = misfit(cell)
    if words is None:
        assert why is None
    else:
        assert words in str(why)
        assert "\n" not in str(why)


def test_what_is_rendered_and_not_run_says_so() -> None:
    assert undriven(gpu_cell()) is None
    assert "rendered, not run" in str(undriven(gpu_cell(trainer="megatron")))
    assert "rendered, not run" in str(undriven(gpu_cell(engine="sglang")))
