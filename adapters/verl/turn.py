"""verl's agent loop of one turn, with what was asked and when: each completion carries it along to verl's trainer.

Named by `rollout.agent.agent_loop_config_path`.
"""

import copy
import functools
import json
import os
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopOutput
from verl.experimental.agent_loop.single_turn_agent_loop import SingleTurnAgentLoop

from adapters.verl.records import FIELD, trace_of
from adapters.verl.samples import PUBLISHED, ROUND, SEEN, VERSION, sample_id
from harness.probe.faults import Faults
from harness.probe.probe import CELL_VARIABLE


class _Named:
    """Goes before a client of verl's in the order of its bases: the engine's name of a request tells whose it is."""

    def _vllm_request_id(self, request_id: str) -> str:
        """verl's own is drawn anew for each answer, and so is the end of ours."""
        return f"{request_id}.{uuid4().hex[:8]}"


class _Witness:
    """Stands before verl's client of the rollout servers for one completion: names the request, times the answer."""

    def __init__(self, client: Any, name: str) -> None:
        self._client, self._name = copy.copy(client), name
        self._client.__class__ = type("NamedClient", (_Named, type(client)), {})
        self.t_start = self.t_end = 0

    async def generate(self, request_id: str, **arguments: Any) -> Any:
        """See `LLMServerClient.generate`."""
        self.t_start = time.perf_counter_ns()
        output = await self._client.generate(f"{self._name}.{request_id}", **arguments)
        self.t_end = time.perf_counter_ns()
        return output


@functools.cache
def _faults() -> Faults:
    """Of the rollout engine, which is another process."""
    cell = json.loads(Path(os.environ[CELL_VARIABLE]).read_text(encoding="utf-8"))
    return Faults.of(cell, "rollout-0", victim="rollout-*")


class WatchedTurn(SingleTurnAgentLoop):
    """`SingleTurnAgentLoop` under watch."""

    server_manager: Any

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        """One completion for one row of the data.

        Raises:
            RuntimeError: verl would ask for a continuation of other tokens than the bundle's.
        """
        queued, extra = time.perf_counter_ns(), row["extra_info"]
        name = sample_id(extra["prompt_id"], row[ROUND], row["session_id"])
        witness = _Witness(self.server_manager, name)
        self.server_manager = witness
        _faults().at("rollout.generate", int(row[ROUND]) + 1)
        output: AgentLoopOutput = await super().run(sampling_params, **row)
        if list(output.prompt_ids) != list(extra["token_ids"]):
            raise RuntimeError(f"verl would not use the bundle's token ids for prompt {extra['prompt_id']}")
        output.extra_fields[FIELD] = {
            "t_queued": queued,
            "t_generate_start": witness.t_start,
            "t_generate_end": witness.t_end,
            "trace_id": trace_of(row[ROUND]),
            "policy_version": row[VERSION],
            "published_version": row[PUBLISHED],
            **output.extra_fields.pop(SEEN, {}),
        }
        return output
