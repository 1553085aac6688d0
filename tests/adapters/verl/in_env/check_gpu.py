"""What is rendered for GPUs passes verl's own configuration: composed by Hydra, converted and validated, never run."""

from typing import Any

import pytest
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.config import FSDPActorConfig, McoreActorConfig, RolloutConfig

from adapters.verl.asynchronous.pace import misfit as out_of_step
from adapters.verl.asynchronous.pace import mode_of
from adapters.verl.asynchronous.programs import composed
from adapters.verl.gpu.overrides import misfit
from adapters.verl.settings import overrides, words
from tests.adapters.verl.gpu.cells import CELLS, gpu_cell

TRAINERS: dict[str, Any] = {"fsdp2": FSDPActorConfig, "megatron": McoreActorConfig}
MODES = [(layout, mode, "multi_gpu") for layout, mode in CELLS]


def configuration(cell: dict[str, Any]) -> Any:
    """verl's whole configuration for a cell, which verl's own check has passed."""
    return composed(mode_of(cell), words(overrides(cell)))


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("kl", [0.0, 0.1])
@pytest.mark.parametrize(("layout", "mode", "profile"), [("colocated_sync", "sync", "one_gpu"), *MODES])
def test_verl_takes_what_is_rendered(
    layout: str, mode: str, profile: str, trainer: str, engine: str, kl: float
) -> None:
    task = {"kl_beta": kl}
    cell = gpu_cell(layout, profile, task, mode=mode, trainer=trainer, engine=engine, replicas=4)
    assert (misfit(cell), out_of_step(cell)) == (None, None)
    config = configuration(cell)
    actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    rollout = omega_conf_to_dataclass(config.actor_rollout_ref.rollout)
    assert type(actor) is TRAINERS[trainer]
    assert type(rollout) is RolloutConfig
    assert (actor.engine.strategy, rollout.name) == (trainer, engine)
    separate = layout == "disaggregated_async"
    assert config.trainer.n_gpus_per_node == cell["profile"]["devices"] - 4 * separate
    assert (rollout.nnodes, rollout.checkpoint_engine.backend) == ((1, "nccl") if separate else (0, "naive"))


@pytest.mark.parametrize("trainer", TRAINERS)
def test_verls_own_objects_hold_what_the_task_asks(trainer: str) -> None:
    task = {"clip_high": 0.28, "weight_decay": 0.1, "learning_rate": 1e-5, "adam_beta2": 0.95, "adam_eps": 1e-6}
    config = configuration(gpu_cell(trainer=trainer, task=task))
    actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    assert (actor.clip_ratio_low, actor.clip_ratio_high) == (0.2, 0.28)
    assert actor.clip_ratio_c >= 1e3
    assert (actor.optim.lr, actor.optim.weight_decay) == (1e-5, 0.1)
    told = dict(actor.optim.override_optimizer_config)
    if trainer == "megatron":
        assert actor.engine.dtype == "bfloat16"
        assert told == {"adam_beta1": 0.9, "adam_beta2": 0.95, "adam_eps": 1e-6}
    else:
        assert dict(actor.engine.mixed_precision)["param_dtype"] == "fp32"
        assert (tuple(actor.optim.betas), told) == ((0.9, 0.95), {"eps": 1e-6})
