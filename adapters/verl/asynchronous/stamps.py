"""From verl's numbers of weights to policy versions, token by token. Imports no framework.

verl stamps an answer with the number of the weights that sampled it. What a number means differs by mode: optimizer
steps are what our own record of each hand-over says, and only that.
"""

from collections.abc import Mapping, Sequence
from typing import Any

STAMPS = "stamps"
"""The key under which a completion carries the stamp of each of its tokens."""

Segment = dict[str, Any]
"""One answer of a rollout server: `tokens` that it sampled by the weights that verl numbers `stamp` (0 tokens where the
request was aborted before it began), verl's word for why it ended, `stop_reason` (`aborted` where verl's client asked
again), and `seen`, what the server adds of its engine (`adapters.verl.server`)."""

Published = Mapping[int, tuple[int, int]]
"""Policy version and publication number of each stamp."""


def engine_facts(segments: Sequence[Segment]) -> dict[str, Any]:
    """What the engines said of a completion as a whole: it began with the first answer's beginning, and it ended for
    the last one's reason."""
    said = [segment["seen"] for segment in segments]
    facts = {key: value for seen in reversed(said) for key, value in seen.items() if key != "finish_reason"}
    return facts | {key: value for key, value in said[-1].items() if key == "finish_reason"}


def token_stamps(segments: Sequence[Segment], length: int) -> list[int]:
    """verl's number of the weights for each of a completion's first `length` tokens; a completion is cut where it grew
    longer than it may be.

    Raises:
        ValueError: the segments have fewer tokens.
    """
    stamps = [int(segment["stamp"]) for segment in segments for _ in range(segment["tokens"])]
    if len(stamps) < length:
        raise ValueError(f"{len(stamps)} tokens in the segments of a completion of {length}")
    return stamps[:length]


def version_columns(stamps: Sequence[int], published: Published) -> dict[str, Any]:
    """The columns of `rollouts` that say which weights sampled a completion: one version, or one a token where it spans
    several; the publication is the oldest one's.

    Raises:
        ValueError: tokens bear a stamp that was never handed over.
    """
    strangers = sorted(set(stamps) - set(published))
    if strangers or not stamps:
        raise ValueError(f"no weights numbered {strangers} were handed over" if strangers else "no token was sampled")
    versions = [published[stamp][0] for stamp in stamps]
    one = versions[0] if len(set(versions)) == 1 else None
    return {
        "policy_version": one,
        "token_policy_versions": None if one is not None else versions,
        "published_version": published[stamps[0]][1],
    }
