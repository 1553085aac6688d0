"""A forward pass over requests of several generated batches, shared out among them. Imports no framework.

An engine that goes on across hand-overs decodes old and new prompts in one pass. Its time is one; each batch is given
as much of it as it has requests in the pass, one after another: spans neither overlap nor leave anything out.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """A generated batch's part of a pass: its requests, and when they are said to have been at work."""

    trace_id: str
    requests: tuple[str, ...]
    t_start: int
    t_end: int


def shares_of(start: int, end: int, trace_of: Mapping[str, str]) -> list[Share]:
    """Share a pass out.

    Args:
        start, end: of the pass, nanoseconds.
        trace_of: the batch of each request in it.
    """
    batches: dict[str, list[str]] = {}
    for request, trace in trace_of.items():
        batches.setdefault(trace, []).append(request)
    shares, done = [], 0
    for trace in sorted(batches):
        requests = tuple(batches[trace])
        edges = [start + (end - start) * count // len(trace_of) for count in (done, done + len(requests))]
        shares.append(Share(trace, requests, *edges))
        done += len(requests)
    return shares
