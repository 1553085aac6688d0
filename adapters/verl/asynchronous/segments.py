"""Which tokens of a completion came from which weights: verl keeps the first and the last version of one, no more.

`FullyAsyncLLMServerClient.generate` asks its base class again wherever a hand-over of weights aborted a request
(workers/rollout/llm_server.py). A class of ours between the two, in the order of method resolution, sees each answer.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from verl.workers.rollout.llm_server import LLMServerClient

from adapters.verl.asynchronous.stamps import Segment
from adapters.verl.samples import SEEN

_SEGMENTS: ContextVar[list[Segment] | None] = ContextVar("segments", default=None)


class _Witness(LLMServerClient):
    """Notes each answer on its way up; a completion's answers come one after another in one task."""

    async def generate(self, request_id: str, **arguments: Any) -> Any:
        """See `LLMServerClient.generate`."""
        output = await super().generate(request_id, **arguments)
        segments = _SEGMENTS.get()
        if segments is not None:
            said = {"stamp": output.extra_fields["global_steps"], "stop_reason": output.stop_reason}
            seen = dict(output.extra_fields.get(SEEN) or {})
            segments.append({"tokens": len(output.token_ids), **said, "seen": seen})
        return output


def witnessed(client: LLMServerClient) -> LLMServerClient:
    """A client that does what `client` does, and whose answers `collecting` collects."""
    kind = type(client)
    copied = copy.copy(client)
    copied.__class__ = _Witness if kind is LLMServerClient else type(f"Witnessed{kind.__name__}", (kind, _Witness), {})
    return copied


@contextmanager
def collecting() -> Iterator[list[Segment]]:
    """Collect the answers of witnessed clients in this task."""
    segments: list[Segment] = []
    token = _SEGMENTS.set(segments)
    try:
        yield segments
    finally:
        _SEGMENTS.reset(token)
