"""verl's hand-over of weights to rollout replicas of their own, with what was handed over, when, and to how many."""

import time
from collections.abc import Callable
from typing import Any

from verl.checkpoint_engine import CheckpointEngineManager
from verl.utils.ray_utils import auto_await

from adapters.verl.asynchronous.controller import HandOver

BYTES, DIGEST = "rlaxes/bytes", "rlaxes/digest"
"""What a checkpoint engine of ours says of a hand-over, see `adapters.verl.cpu.transport`; verl's own say neither."""


class WatchedManager(CheckpointEngineManager):
    """`CheckpointEngineManager` that calls `told` after each hand-over."""

    @classmethod
    def over(cls, manager: CheckpointEngineManager, told: Callable[[HandOver], None]) -> "WatchedManager":
        """One in the place of `manager`."""
        watched = cls(manager.config, manager.actor_wg, manager.replicas)
        watched.told = told
        return watched

    told: Callable[[HandOver], None]

    @auto_await
    async def update_weights(self, global_steps: int | None = None) -> Any:
        """See `CheckpointEngineManager.update_weights`."""
        start = time.perf_counter_ns()
        said = dict(await super().update_weights(global_steps) or {})
        end = time.perf_counter_ns()
        size, digest = said.pop(BYTES, None), said.pop(DIGEST, None)
        self.told(HandOver(int(global_steps or 0), start, end, len(self.replicas), size, digest))
        return said
