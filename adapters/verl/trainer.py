"""verl's synchronous V1 trainer under watch, in verl's own registry of trainers (`trainer.v1.trainer_mode`)."""

import json
import time
from pathlib import Path
from typing import Any

import ray
from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils import tensordict_utils as tu

from adapters.verl.samples import ROUND
from adapters.verl.settings import POLL_SECONDS, home
from adapters.verl.worker import ProbedWorker
from harness.probe import Probe


@register_trainer("rlaxes_sync")
class ProbedSync(PPOTrainerSync):
    """`PPOTrainerSync`."""

    def __init__(self, config: Any) -> None:
        self.probe = Probe.from_environment("controller")
        self._round = 0
        super().__init__(config)

    def _build_replay_buffer(self) -> Any:
        # verl compares its mode with its own names in several places; ours is the synchronous one.
        self.trainer_mode = "sync"
        buffer = super()._build_replay_buffer()
        buffer.poll_interval = POLL_SECONDS
        return buffer

    def _init_resource_pool_mgr(self) -> None:
        super()._init_resource_pool_mgr()
        for role in self.role_worker_mapping:
            self.role_worker_mapping[role] = ray.remote(ProbedWorker)

    def _submit_batch_to_rollout(self, batch: Any) -> int:
        tu.assign_non_tensor_data(batch, ROUND, self._round)
        self._round += 1
        return super()._submit_batch_to_rollout(batch)

    def on_step_end(self) -> None:
        super().on_step_end()
        taken = self.actor_rollout_wg.take_records(None)
        print("TAKEN", {k: len(v) for k, v in taken[0].items()}, flush=True)
        self.probe.progress(self.global_steps, self.total_training_steps, "optimizer steps")

    def fit(self, agent_loop_manager: Any) -> None:
        start = time.perf_counter()
        super().fit(agent_loop_manager)
        result = {"train_seconds": time.perf_counter() - start, "final_parameter_sha256": self.actor_rollout_wg.digest()[0]}
        (home(self.probe.cell) / "result.partial.json").write_text(json.dumps(result), encoding="utf-8")
        self.probe.close()
