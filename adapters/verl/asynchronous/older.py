"""What verl's two older trainers have in common, under watch."""

import json
import os
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import ray

from adapters.verl.asynchronous.controller import PROCESS, AsyncController, of_older_trainer
from adapters.verl.asynchronous.publication import WatchedManager
from adapters.verl.asynchronous.worker import ProbedDetachWorker
from adapters.verl.processes import close_probes, open_probe
from adapters.verl.readback import note_start
from adapters.verl.records import FIELD
from adapters.verl.run import RESULT, STARTED_VARIABLE
from adapters.verl.scoring import stand_ready
from adapters.verl.settings import home


class WatchedOlder:
    """Goes before one of verl's older trainers in the order of its bases: every override calls verl's own."""

    checkpoint_manager: Any

    def __init__(self, *args: Any, role_worker_mapping: dict[Any, Any], **kwargs: Any) -> None:
        self.probe = open_probe(PROCESS)
        self.controller = AsyncController(self.probe)
        watched = {role: ray.remote(ProbedDetachWorker) for role in role_worker_mapping}
        super().__init__(*args, role_worker_mapping=watched, **kwargs)  # type: ignore[call-arg]

    @property
    def observes(self) -> bool:
        """False in the bare twin of a run."""
        return self.probe.enabled

    def watch_manager(self) -> None:
        """Hand-overs are told of from now on."""
        if self.observes:
            self.checkpoint_manager = WatchedManager.over(self.checkpoint_manager, self.controller.handed_over)

    def published(self, stamp: int) -> None:
        """Weights that verl numbers `stamp` were handed over; the first time, everything stands."""
        if not self.observes:
            return
        first = not self.controller.published
        with self.controller.published_aside(self._records):
            self.controller.stamped(stamp)
        if first:
            facts = self.actor_rollout_wg.read_facts()[0]  # type: ignore[attr-defined]
            note_start(self.probe, self.config, facts)  # type: ignore[attr-defined]

    def _records(self) -> Any:
        return self.actor_rollout_wg.take_records(self.controller.trace_id)[0]  # type: ignore[attr-defined]

    def begins(self, actors: "Scorers") -> None:
        """The first step is about to begin: what verl has only asked for so far is waited for, not in that step."""
        ready = [worker.__ray_call__.remote(stand_ready) for worker in actors.rewards]
        ray.get([*ready, *(worker.__ray_ready__.remote() for worker in actors.agents)])
        now = time.perf_counter_ns()
        self.probe.add_span("startup", int(os.environ[STARTED_VARIABLE]), now, trace_id="startup")
        self.controller.window["t_start"] = now

    def batch_came(self, start: int) -> None:
        """A batch was waited for since `start`."""
        if self.observes:
            self.controller.waited(start, self.controller.trace_id)

    def _fit_compute_advantage(self, batch: Any) -> Any:
        batch = super()._fit_compute_advantage(batch)  # type: ignore[misc]
        if self.observes:
            with self.controller.aside(self.controller.trace_id, self._records):
                columns = of_older_trainer(batch)
                self.controller.sampled([""] * len(batch), [{}] * len(batch), columns)
                for name in batch.non_tensor_batch[FIELD][0]["row"]:
                    batch.non_tensor_batch[name] = _objects(columns[name])
        return batch

    def _fit_update_actor(self, batch: Any) -> Any:
        batch = super()._fit_update_actor(batch)  # type: ignore[misc]
        if self.observes:
            with self.controller.aside(self.controller.trace_id, self._records):
                self.controller.trained_batch()
        self.probe.progress(self.controller.steps, self.probe.cell["task"]["steps"], "optimizer steps")
        return batch

    def ended(self, seconds: float, actors: "Scorers") -> None:
        """The whole of training is over, and took that long; every process that writes to the ledger is told."""
        digest = self.actor_rollout_wg.digest()[0]  # type: ignore[attr-defined]
        workers = self.actor_rollout_wg.workers  # type: ignore[attr-defined]
        closed = [actor.__ray_call__.remote(close_probes) for actor in (*actors.agents, *actors.rewards, *workers)]
        servers = [server for replica in self.checkpoint_manager.replicas for server in replica.servers]
        ray.get([*closed, *(server.collective_rpc.remote("end_watch") for server in servers)])
        self.probe.note("final_parameter_sha256", digest)
        self.controller.close()
        result = {"train_seconds": seconds, "final_parameter_sha256": digest, "observer": self.observes}
        (home(self.probe.cell) / RESULT).write_text(json.dumps(result), encoding="utf-8")


def _objects(values: list[Any]) -> Any:
    """A column of verl's batches that holds one object a row."""
    column: Any = np.empty(len(values), dtype=object)
    column[:] = values
    return column


@dataclass(frozen=True)
class Scorers:
    """The agent loop workers and reward workers of a run."""

    agents: list[Any]
    rewards: list[Any]

    @classmethod
    def of(cls, owner: Any) -> "Scorers":
        """Those of one of verl's older trainers, or of its rollouter."""
        return cls(owner.async_rollout_manager.agent_loop_workers, owner.reward_loop_manager.reward_loop_workers)
