"""verl's asynchronous V1 trainers under watch, in verl's own registry of trainers."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import ray
import transfer_queue as tq
from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.trainer.ppo.v1.trainer_colocate_async import PPOTrainerColocateAsync
from verl.trainer.ppo.v1.trainer_separate_async import PPOTrainerSeparateAsync
from verl.utils import tensordict_utils as tu

from adapters.verl.asynchronous.controller import AsyncController
from adapters.verl.asynchronous.publication import WatchedManager
from adapters.verl.asynchronous.worker import ProbedDetachWorker
from adapters.verl.controller import FIELDS
from adapters.verl.readback import note_start
from adapters.verl.samples import ROUND
from adapters.verl.trainer import Probed

BEFORE_TRAINING = [name for name in FIELDS if name != "advantages"]
"""What a completion has that was not taken for training."""
DRAIN_SECONDS = 60.0
DRAIN_POLL_SECONDS = 0.05


class Asynchronous(Probed):
    """Goes before a trainer of verl's, in the place of `Probed`: batches are not those that were handed out."""

    controller: AsyncController

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.controller = AsyncController(self.probe)

    def _build_replay_buffer(self) -> Any:
        buffer = super()._build_replay_buffer()
        if self.observes:
            buffer.told = self._dropped
        return buffer

    def _dropped(self, reason: str, keys: Sequence[str]) -> None:
        self.controller.dropped(reason, self._read(keys, BEFORE_TRAINING))

    def _read(self, keys: Sequence[str], fields: Sequence[str]) -> Any:
        return tq.kv_batch_get(keys=list(keys), partition_id="train", select_fields=list(fields))

    def _submit_batch_to_rollout(self, batch: Any) -> int:
        """Prompts are handed out. verl's queue keeps what each row has: a restart hands them out under the same number;
        what is the same for all rows it would not keep."""
        tu.assign_non_tensor_stack(batch, ROUND, [self._round] * len(batch))
        self._round += 1
        return super(Probed, self)._submit_batch_to_rollout(batch)

    def _place(self, sampled: int) -> dict[str, Any]:
        return super()._place(sampled) | {"queue": self.replay_buffer.prompts()}

    def _state(self) -> dict[str, Any]:
        return super()._state() | self.controller.state()

    def _take_state(self, state: Mapping[str, Any]) -> None:
        super()._take_state(state)
        self.controller.take_state(state)

    def on_init_end(self) -> None:
        """The initial weights are handed over: everything stands."""
        super(Probed, self).on_init_end()
        if self.observes:
            facts = self.actor_rollout_wg.read_facts()[0]
            self._published()
            note_start(self.probe, self.config, facts)

    def on_sample_end(self) -> None:
        """The wait for a batch ended."""
        self.controller.waited(self._waits, self.controller.trace_id)
        super(Probed, self).on_sample_end()

    def _compute_advantage(self, batch: Any, metrics: Any) -> Any:
        out = super(Probed, self)._compute_advantage(batch, metrics)
        if self.observes:
            with self.controller.aside(self.controller.trace_id, self._records):
                self.controller.sampled(batch.keys, batch.tags, self._read(batch.keys, FIELDS))
            self._sampled += len(batch.keys)
        return out

    def _update_actor(self, batch: Any, metrics: Any) -> Any:
        out = super()._update_actor(batch, metrics)
        if self.observes:
            with self.controller.aside(self.controller.trace_id, self._records):
                self.controller.trained_batch()
        self.probe.progress(self.controller.steps, self.probe.cell["task"]["steps"], "optimizer steps")
        return out

    def on_step_end(self) -> None:
        """The weights are handed over."""
        super(Probed, self).on_step_end()
        if self.observes:
            self._published()

    def _published(self) -> None:
        with self.controller.published_aside(self._records):
            self.controller.stamped(self.global_steps)

    def _records(self) -> Any:
        return self.actor_rollout_wg.take_records(self.controller.trace_id)[0]


class Drained:
    """Goes right before a trainer of verl's: once verl has taken its last step, prompts that were handed out ahead are
    waited for, so that what the engine did for them is written down."""

    def fit(self, agent_loop_manager: Any) -> None:
        """The whole of training, and the wait."""
        super().fit(agent_loop_manager)  # type: ignore[misc]
        deadline = time.monotonic() + DRAIN_SECONDS
        keys, unfinished = self.replay_buffer.left()  # type: ignore[attr-defined]
        while unfinished and time.monotonic() < deadline:
            time.sleep(DRAIN_POLL_SECONDS)
            keys, unfinished = self.replay_buffer.left()  # type: ignore[attr-defined]
        if self.observes and keys:  # type: ignore[attr-defined]
            self.controller.left(self._read(keys, BEFORE_TRAINING))  # type: ignore[attr-defined]


@register_trainer("rlaxes_colocate_async")
class ProbedColocateAsync(Asynchronous, Drained, PPOTrainerColocateAsync):
    """`PPOTrainerColocateAsync`."""


@register_trainer("rlaxes_separate_async")
class ProbedSeparateAsync(Asynchronous, Drained, PPOTrainerSeparateAsync):
    """`PPOTrainerSeparateAsync`."""

    standalone_checkpoint_manager: Any

    def _init_resource_pool_mgr(self) -> None:
        super()._init_resource_pool_mgr()
        for role in self.role_worker_mapping:
            self.role_worker_mapping[role] = ray.remote(ProbedDetachWorker)

    def _setup(self) -> None:
        super()._setup()
        if self.observes:
            manager = self.standalone_checkpoint_manager
            self.standalone_checkpoint_manager = WatchedManager.over(manager, self.controller.handed_over)
