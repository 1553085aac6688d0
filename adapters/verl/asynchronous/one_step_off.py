"""verl's `one_step_off` under watch: its task runner and trainer, each a class of verl's with a few methods more.

The task runner takes the trainer from its own module by name; there is no plug-in point, so ours is put there in the
process that runs it.
"""

import time
from typing import Any

import ray
from verl.experimental.one_step_off_policy import main_ppo
from verl.experimental.one_step_off_policy.ray_trainer import OneStepOffRayTrainer

from adapters.verl.asynchronous.older import Scorers, WatchedOlder


class ProbedTrainer(WatchedOlder, OneStepOffRayTrainer):
    """`OneStepOffRayTrainer`."""

    def init_workers(self) -> None:
        """Trainer and rollout are built."""
        super().init_workers()
        self.watch_manager()

    def _fit_update_weights(self) -> None:
        super()._fit_update_weights()
        self.published(self.global_steps)

    async def fit(self) -> None:
        """The whole of training."""
        start = time.perf_counter()
        await super().fit()
        self.ended(time.perf_counter() - start, Scorers.of(self))

    async def _async_gen_next_batch(self, continuous_iterator: Any) -> Any:
        if "t_start" not in self.controller.window:
            self.begins(Scorers.of(self))
        return await super()._async_gen_next_batch(continuous_iterator)

    async def _fit_generate(self, batch_data_future: Any, continuous_iterator: Any) -> Any:
        start = time.perf_counter_ns()
        await batch_data_future
        # The first batch is asked for inside this wait, and so the start-up ends in it.
        self.batch_came(max(start, self.controller.window["t_start"]))
        return await super()._fit_generate(batch_data_future, continuous_iterator)


class ProbedRunner(main_ppo.OneStepTaskRunner.__ray_metadata__.modified_class):
    """`OneStepTaskRunner`."""

    def run(self, config: Any) -> None:
        """Run a cell with the watched trainer."""
        main_ppo.OneStepOffRayTrainer = ProbedTrainer
        super().run(config)


def runner() -> Any:
    """The Ray actor class of the task runner."""
    return ray.remote(num_cpus=1, max_concurrency=100)(ProbedRunner)
