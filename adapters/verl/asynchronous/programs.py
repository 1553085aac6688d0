"""verl's main programs: which one a mode has, the configuration that it reads, and the task runner that it starts."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from verl.trainer.ppo.utils import need_critic, need_reference_policy
from verl.utils.config import validate_config

from adapters.verl.asynchronous.overrides import PROGRAMS, SEARCH_PATH

V1 = ("verl.trainer", "ppo_trainer")


def composed(mode: str, settings: Sequence[str]) -> Any:
    """verl's configuration for a mode, with `settings` in place of its own."""
    package, name = PROGRAMS.get(mode, V1)
    folder = Path(str(importlib.import_module(package).__file__)).parent / "config"
    path = [] if package == V1[0] else [f"hydra.searchpath=[{SEARCH_PATH}]"]
    with initialize_config_dir(str(folder), version_base=None):
        config = compose(name, overrides=[*settings, *path])
    if mode != "fully_async":
        # verl's own check of its settings; it does not know that fully_async has no train batch.
        reference = need_reference_policy(config)
        validate_config(config=config, use_reference_policy=reference, use_critic=need_critic(config))
    if package != V1[0]:
        # The older programs' main functions do this; the rest of them reads only the latter.
        config.actor_rollout_ref.rollout.nnodes = config.rollout.nnodes
        config.actor_rollout_ref.rollout.n_gpus_per_node = config.rollout.n_gpus_per_node
    return config


def task_runner(mode: str) -> Any:
    """The Ray actor class that runs a mode."""
    if mode == "fully_async":
        from adapters.verl.asynchronous.fully_async import runner

        return runner()
    if mode == "one_step_off":
        from adapters.verl.asynchronous.one_step_off import runner

        return runner()
    from verl.trainer.main_ppo import TaskRunnerV1

    return TaskRunnerV1
