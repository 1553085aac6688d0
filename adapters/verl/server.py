"""verl's vLLM server under watch; in verl's own registry of rollout replicas, in place of the one it stems from."""

import time
from collections.abc import AsyncIterator
from typing import Any

import ray
from verl.workers.rollout.vllm_rollout.vllm_async_server import vLLMHttpServer, vLLMReplica

from adapters.verl.samples import SEEN

SAME_CLOCK = time.get_clock_info("monotonic").implementation == time.get_clock_info("perf_counter").implementation


class ProbedVllmServer(vLLMHttpServer):
    """`vLLMHttpServer`, whose answers say when the engine began a request and when its first token was there."""

    def _get_worker_extension_cls(self) -> str:
        return "adapters.verl.extension.ProbedExtension"

    async def launch_server(self, *args: Any, **kwargs: Any) -> None:
        """Starts the engine; its answers are then looked at on their way out."""
        await super().launch_server(*args, **kwargs)
        self._seen: dict[str, dict[str, int]] = {}
        if self.node_rank == 0:
            self._ask = self.engine.generate
            self.engine.generate = self._watched

    async def _watched(self, *args: Any, request_id: str, **kwargs: Any) -> AsyncIterator[Any]:
        async for output in self._ask(*args, request_id=request_id, **kwargs):
            if output.finished:
                self._seen[request_id] = _times(output.metrics) | _reason(output)
            yield output

    async def generate(self, prompt_ids: Any, sampling_params: Any, request_id: str, *args: Any, **kwargs: Any) -> Any:
        """See `vLLMHttpServer.generate`."""
        answer = await super().generate(prompt_ids, sampling_params, request_id, *args, **kwargs)
        answer.extra_fields[SEEN] = self._seen.pop(request_id, {})
        return answer


def _times(metrics: Any) -> dict[str, int]:
    """vLLM's `RequestStateStats` are seconds of `time.monotonic`, which on Linux is the clock of `perf_counter`."""
    if metrics is None or not SAME_CLOCK:
        return {}
    wanted = {"t_generate_start": metrics.scheduled_ts, "t_first_token": metrics.first_token_ts}
    return {name: int(seconds * 1e9) for name, seconds in wanted.items() if seconds}


def _reason(output: Any) -> dict[str, Any]:
    """vLLM's own word: verl calls a completion that was cut off at its longest `completed` too."""
    return {"finish_reason": output.outputs[0].finish_reason} if output.outputs else {}


class ProbedVllmReplica(vLLMReplica):
    """`vLLMReplica` with servers under watch."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.server_class = ray.remote(ProbedVllmServer)
