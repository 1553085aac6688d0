"""verl's agent-loop workers under watch, reached by `rollout.agent.agent_loop_manager_class`."""

import time
from typing import Any

import ray
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ, AgentLoopWorkerTQ

from adapters.verl.processes import open_probe
from adapters.verl.records import FIELD, Facts, lost_row

PROCESS = "agents"


class ProbedAgentLoopWorker(AgentLoopWorkerTQ.__ray_metadata__.modified_class):
    """`AgentLoopWorkerTQ`, which writes down the completions that verl loses because they could not be scored."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        start = time.perf_counter_ns()
        super().__init__(*args, **kwargs)
        self._probe = open_probe(PROCESS)
        self._probe.add_span("startup", start, time.perf_counter_ns(), trace_id="startup")
        self._facts = Facts.of(self._probe.cell)

    async def _agent_loop_postprocess(self, output: Any, validate: bool, **row: Any) -> None:
        try:
            await super()._agent_loop_postprocess(output, validate, **row)
        except Exception as error:
            if not validate and FIELD in output.extra_fields:
                self._lost(output, row, error)
            raise

    def _lost(self, output: Any, row: Any, error: Exception) -> None:
        """The completion is not heard of again; verl trains on the others of its group."""
        rollout, fate = lost_row(output, row, self._facts)
        detail = f"{type(error).__name__}: {error}"[:500]
        where = {"sample_id": rollout["sample_id"]}
        self._probe.fault("verifier_error", "infrastructure", "verifier", detail, **where)
        self._probe.accept_rollouts([rollout])
        self._probe.fates([fate])
        self._probe.flush()


class ProbedAgentLoopManager(AgentLoopManagerTQ):
    """`AgentLoopManagerTQ` with workers under watch."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agent_loop_workers_class = ray.remote(ProbedAgentLoopWorker)
