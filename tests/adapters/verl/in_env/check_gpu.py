"""What is rendered for GPUs passes verl's own configuration: composed by Hydra, converted and validated, never run."""

from typing import Any

import pytest
from hydra import compose, initialize_config_module
from verl.utils.config import omega_conf_to_dataclass, validate_config
from verl.workers.config import FSDPActorConfig, McoreActorConfig, RolloutConfig

from adapters.verl.gpu.overrides import misfit
from adapters.verl.settings import overrides, words
from tests.adapters.verl.gpu.cells import gpu_cell

TRAINERS: dict[str, Any] = {"fsdp2": FSDPActorConfig, "megatron": McoreActorConfig}


def composed(cell: dict[str, Any]) -> Any:
    """verl's whole configuration for a cell."""
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose("ppo_trainer", overrides=words(overrides(cell)))


@pytest.mark.parametrize("profile", ["one_gpu", "multi_gpu"])
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("kl", [0.0, 0.1])
def test_verl_takes_what_is_rendered(trainer: str, engine: str, profile: str, kl: float) -> None:
    cell = gpu_cell(profile=profile, trainer=trainer, engine=engine, task={"kl_beta": kl, "minibatches": 2})
    assert misfit(cell) is None
    config = composed(cell)
    validate_config(config, use_reference_policy=kl > 0, use_critic=False)
    actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    rollout = omega_conf_to_dataclass(config.actor_rollout_ref.rollout)
    assert type(actor) is TRAINERS[trainer]
    assert type(rollout) is RolloutConfig
    assert (actor.engine.strategy, rollout.name) == (trainer, engine)


@pytest.mark.parametrize("trainer", TRAINERS)
def test_verls_own_objects_hold_what_the_task_asks(trainer: str) -> None:
    task = {"clip_high": 0.28, "weight_decay": 0.1, "learning_rate": 1e-5, "adam_beta2": 0.95, "adam_eps": 1e-6}
    config = composed(gpu_cell(trainer=trainer, task=task))
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
