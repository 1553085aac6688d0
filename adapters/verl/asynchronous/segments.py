"""Which tokens of a completion came from which weights: verl keeps the first and the last version of one, no more.

`FullyAsyncLLMServerClient.generate` asks its base class again wherever a hand-over of weights aborted a request
(workers/rollout/llm_server.py). A class of ours between the two, in the order of method resolution, sees each answer.
"""

import copy
import time
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from verl.workers.rollout.llm_server import LLMServerClient


@dataclass(frozen=True)
class Segment:
    """One answer of a rollout server: its tokens were sampled by the weights of one stamp.

    Attributes:
        tokens: how many; 0 where the request was aborted before it began.
        stamp: verl's number of the weights.
        stop_reason: verl's word for why it ended; `aborted` where the client asked again.
        t_start, t_end: `time.perf_counter_ns()` in the process that asked.
    """

    tokens: int
    stamp: int
    stop_reason: str
    t_start: int
    t_end: int


_SEGMENTS: ContextVar[list[Segment] | None] = ContextVar("segments", default=None)


class _Witness(LLMServerClient):
    """Notes each answer on its way up; a completion's answers come one after another in one task."""

    async def generate(self, request_id: str, **arguments: Any) -> Any:
        """See `LLMServerClient.generate`."""
        start = time.perf_counter_ns()
        output = await super().generate(request_id, **arguments)
        end = time.perf_counter_ns()
        segments = _SEGMENTS.get()
        if segments is not None:
            stamp = output.extra_fields["global_steps"]
            segments.append(Segment(len(output.token_ids), stamp, output.stop_reason, start, end))
        return output


def witnessed(client: LLMServerClient) -> LLMServerClient:
    """A client that does what `client` does, and whose answers `sampled` can tell apart."""
    kind = type(client)
    copied = copy.copy(client)
    copied.__class__ = _Witness if kind is LLMServerClient else type(f"Witnessed{kind.__name__}", (kind, _Witness), {})
    return copied


async def sampled(client: LLMServerClient, request_id: str, **arguments: Any) -> tuple[Any, list[Segment]]:
    """Generate with a witnessed client: verl's own output, and the segments that it was put together from."""
    segments: list[Segment] = []
    token = _SEGMENTS.set(segments)
    try:
        return await client.generate(request_id, **arguments), segments
    finally:
        _SEGMENTS.reset(token)
