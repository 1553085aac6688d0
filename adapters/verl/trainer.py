"""verl's synchronous V1 trainer under watch, in verl's own registry of trainers (`trainer.v1.trainer_mode`)."""

import json
import os
import time
from collections.abc import Mapping
from typing import Any

import ray
import transfer_queue as tq
from verl.trainer.ppo.v1.trainer_base import PPOTrainer, register_trainer
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils import tensordict_utils as tu

from adapters.verl.checkpoints import Checkpoints
from adapters.verl.controller import FIELDS, Controller
from adapters.verl.processes import close_probes, open_probe
from adapters.verl.readback import note_start
from adapters.verl.records import trace_of
from adapters.verl.run import RESULT, STARTED_VARIABLE
from adapters.verl.samples import PUBLISHED, ROUND, VERSION
from adapters.verl.scoring import stand_ready
from adapters.verl.settings import POLL_SECONDS, home, updates_per_batch
from adapters.verl.worker import ProbedWorker
from harness.probe.faults import Faults

PROCESS = "controller"


class Probed(PPOTrainer):
    """Goes before a trainer of verl's in the order of its bases: every override calls verl's own and changes nothing
    but the interval at which finished prompts are looked for."""

    def __init__(self, config: Any) -> None:
        self.probe = open_probe(PROCESS)
        self.controller, self.checkpoints = Controller(self.probe), Checkpoints(self.probe)
        self._round = self._sampled = 0
        self._trace = trace_of(0)
        self._started = int(os.environ[STARTED_VARIABLE])
        # Of the trainer worker, which is another process, this one knows when its checkpoint is whole.
        trainer = Faults.of(self.probe.cell, "trainer-0", victim="trainer-*")
        self._faults = {"trainer-0": trainer, "controller": Faults.of(self.probe.cell, "controller")}
        super().__init__(config)

    @property
    def observes(self) -> bool:
        """False in the bare twin of a run."""
        return self.probe.enabled

    def _build_replay_buffer(self) -> Any:
        buffer = super()._build_replay_buffer()
        buffer.poll_interval = POLL_SECONDS
        return buffer

    def _init_resource_pool_mgr(self) -> None:
        self._says("starting verl's workers and engine")
        super()._init_resource_pool_mgr()
        for role in self.role_worker_mapping:
            self.role_worker_mapping[role] = ray.remote(ProbedWorker)

    def _load_checkpoint(self) -> None:
        """verl loads what its settings name; it is then asked what it holds."""
        start = time.perf_counter_ns()
        super()._load_checkpoint()
        kept = self.checkpoints.found
        if kept is not None:
            self._take_state(kept.state)
            self.controller.go_on(kept.step, kept.policy_version, kept.state["published"])
            self.actor_rollout_wg.set_place(kept.step, kept.policy_version, kept.state["published"])
        if self.observes and self.probe.cell["attempt"]:
            self.checkpoints.resumed(kept, self.actor_rollout_wg.held()[0], self._place(0))
        if kept is not None:
            where = {"step": kept.step, "policy_version": kept.policy_version}
            self.probe.add_span("startup", self._started, start, trace_id="startup")
            self._started = time.perf_counter_ns()
            self.probe.add_span("restore", start, self._started, trace_id=f"restore-{kept.step}", **where)

    def _save_checkpoint(self) -> None:
        """verl writes what its settings name; what it holds is kept beside it."""
        if not self.observes:
            super()._save_checkpoint()
            return
        with self.controller.aside(self._trace, self._records):
            self.controller.trained(self._round - 1)
        start = time.perf_counter_ns()
        with self.controller.span("checkpoint", f"checkpoint-{self.controller.steps}"):
            super()._save_checkpoint()
        path = home(self.probe.cell) / "checkpoints" / f"global_step_{self.global_steps}"
        with self.controller.aside(self._trace, self._records):
            place = self._place(self._sampled)
            self.checkpoints.saved(path, start, self.actor_rollout_wg.held()[0], place, self._state())
        self._faults["trainer-0"].at("trainer.after_checkpoint")

    def _state(self) -> dict[str, Any]:
        """What the next attempt has to know of this one."""
        return {"round": self._round, "published": self.controller.published}

    def _take_state(self, state: Mapping[str, Any]) -> None:
        """The attempt before wrote `state`."""
        self._round = state["round"]

    def _place(self, sampled: int) -> dict[str, Any]:
        """Where the run stands between two steps."""
        held = {"step": self.controller.steps, "version": self.controller.version, "sampled": sampled, "queue": []}
        return held | {"cursor": next_prompt(self.train_dataloader)}

    def on_init_end(self) -> None:
        """The initial weights are handed over: everything stands."""
        self._says("handing the first weights over")
        super().on_init_end()
        if self.observes:
            facts = self.actor_rollout_wg.read_facts()[0]
            self.controller.publish(self._records()["publications"])
            note_start(self.probe, self.config, facts)

    def on_train_begin(self) -> None:
        """The first step is about to begin: what verl has only asked for so far is waited for, not in that step."""
        self._says("starting agent loop and verifier")
        rewards = self.reward_loop_manager.reward_loop_worker_handles or ()
        ready = [worker.__ray_call__.remote(stand_ready) for worker in rewards]
        ray.get([*ready, *(worker.__ray_ready__.remote() for worker in self.agent_loop_manager.agent_loop_workers)])
        now = time.perf_counter_ns()
        self.probe.add_span("startup", self._started, now, trace_id="startup")
        self.controller.window["t_start"] = now
        super().on_train_begin()

    def _submit_batch_to_rollout(self, batch: Any) -> int:
        """A batch of prompts is handed out: it carries its number and what weights the engine has."""
        stamp = {ROUND: self._round, VERSION: self.controller.version, PUBLISHED: self.controller.published - 1}
        for name, value in stamp.items():
            tu.assign_non_tensor_data(batch, name, value)
        self._round += 1
        return super()._submit_batch_to_rollout(batch)

    def prepare_step(self) -> Any:
        """Prompts are taken from the data and handed out."""
        self._trace = trace_of(self._round)
        with self.controller.span("prompt_prep", self._trace) as span:
            span.records = self.config.data.train_batch_size
            return super().prepare_step()

    def on_sample_begin(self) -> None:
        """The wait for a batch begins."""
        self._waits = time.perf_counter_ns()
        super().on_sample_begin()

    def on_sample_end(self) -> None:
        """It ended."""
        self.controller.waited(self._waits, self._trace)
        super().on_sample_end()

    def _compute_advantage(self, batch: Any, metrics: Any) -> Any:
        out = super()._compute_advantage(batch, metrics)
        if self.observes:
            with self.controller.aside(self._trace, self._records):
                data = tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=list(FIELDS))
                self.controller.sampled(batch.keys, batch.tags, data)
            self._sampled += len(batch.keys)
        return out

    def on_step_end(self) -> None:
        """The step is applied, and its weights are handed over."""
        super().on_step_end()
        if self.observes:
            trace, self._trace = self._trace, trace_of(self._round)
            with self.controller.aside(trace, self._records):
                self.controller.trained(self._round - 1)
        updates = updates_per_batch(self.probe.cell["task"])
        self._says("optimizer steps", self.global_steps * updates)
        self._faults["controller"].at("controller.step")

    def _end_watches(self) -> None:
        """Every process that writes to the ledger writes its closing note."""
        agents, rewards = (
            self.agent_loop_manager.agent_loop_workers,
            self.reward_loop_manager.reward_loop_worker_handles,
        )
        actors = [*agents, *(rewards or ()), *self.actor_rollout_wg.workers]
        closed = [actor.__ray_call__.remote(close_probes) for actor in actors]
        servers = [server for manager in self._rollout_server_managers() for server in manager.server_handles]
        ray.get([*closed, *(server.collective_rpc.remote("end_watch") for server in servers)])

    def _says(self, text: str, steps: int = 0) -> None:
        """Tell the harness how far the run is."""
        self.probe.progress(steps, self.probe.cell["task"]["steps"], text)

    def _records(self) -> Any:
        """What the trainer worker saw; what it does next is of the batch `_trace`."""
        return self.actor_rollout_wg.take_records(self._trace)[0]

    def fit(self, agent_loop_manager: Any) -> None:
        """The whole of training."""
        start = time.perf_counter()
        super().fit(agent_loop_manager)
        seconds = time.perf_counter() - start
        digest = self.actor_rollout_wg.digest()[0]
        self._end_watches()
        self.probe.note("final_parameter_sha256", digest)
        self.controller.close()
        result = {"train_seconds": seconds, "final_parameter_sha256": digest, "observer": self.observes}
        (home(self.probe.cell) / RESULT).write_text(json.dumps(result), encoding="utf-8")


def next_prompt(loader: Any) -> int:
    """How many batches of prompts verl's data loader has handed out, from its own state."""
    return int(loader.state_dict()["_num_yielded"])


@register_trainer("rlaxes_sync")
class ProbedSync(Probed, PPOTrainerSync):
    """`PPOTrainerSync`."""

    def _build_replay_buffer(self) -> Any:
        # verl compares the name of a mode with its own in several places; ours is the synchronous one.
        self.trainer_mode = "sync"
        return super()._build_replay_buffer()
