"""What the roles of the loop say to one another: plain data that crosses a process boundary. Standard library only."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adapters.reference.engine import Completion
from harness.task.bundle import Prompt


@dataclass(frozen=True)
class Request:
    """To a rollout worker: `group_size` completions for each prompt; `seed` decides every draw, whichever answers.

    Attributes:
        trace_id: the generated batch, and the attempt at it.
        step: optimizer steps taken when it was asked, for the timeline.
    """

    trace_id: str
    prompts: list[Prompt]
    group_size: int
    max_tokens: int
    seed: int
    step: int


@dataclass(frozen=True)
class Answer:
    """`groups[i]` holds the completions of prompt i, all sampled by the policy version that the worker served."""

    groups: list[list[Completion]]
    policy_version: int
    published_version: int


@dataclass(frozen=True)
class Scoring:
    """To a scorer: for each completion its prompt's id and the tokens of its turns; and where in the timeline they
    belong."""

    items: list[tuple[str, list[list[int]]]]
    trace_id: str
    policy_version: int
    step: int


@dataclass(frozen=True)
class Update:
    """From the trainer, of one optimizer step.

    Attributes:
        loss, grad_norm: None where there was nothing to train on; the norm is taken before clipping.
        applied: False where the gradient was not finite, or there was nothing to train on.
        logprobs: [S][T] of each sample under the weights before the step; None where the policy did not sample.
        padded_tokens: padding positions computed on.
        t_start, t_end: perf_counter_ns.
    """

    loss: float | None
    grad_norm: float | None
    applied: bool
    version_before: int
    version_after: int
    learning_rate: float
    padded_tokens: int
    t_start: int
    t_end: int
    logprobs: list[list[float | None]] = field(repr=False)


@dataclass(frozen=True)
class Scores:
    """From the trainer, before a batch's first step: [S][T] log-probs of the old and the reference policy, each None
    where the objective needs none; within a row None where the policy did not sample."""

    old: list[list[float | None]] | None
    reference: list[list[float | None]] | None


@dataclass(frozen=True)
class Place:
    """Where one named tensor lies in the bytes of a publication: `size` bytes from `start` on, in row-major order."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    start: int
    size: int


@dataclass(frozen=True)
class Part:
    """What one trainer rank wrote of one tensor: `size` bytes of the publication from `start` on, in the file or the
    memory at `path`, with their digest."""

    name: str
    start: int
    size: int
    digest: str
    path: str


@dataclass(frozen=True)
class Shipment:
    """From the trainer to every replica: the weights of one publication.

    Attributes:
        number: of the publication; `policy_version`: of the weights.
        kind: `shared`, `full`, `sharded` or `adapter`.
        layout: what the publication is made of, for a replica that is another process.
        parts: what the ranks wrote of it; together they must be all of it.
        ranks: how many wrote.
        digest: over the digests of all parts; None where the tensors are handed over.
        tensors: the named tensors, for an engine in the trainer's own process.
    """

    number: int
    policy_version: int
    kind: str
    bytes: int
    layout: tuple[Place, ...] = ()
    parts: tuple[Part, ...] = ()
    ranks: int = 1
    digest: str | None = None
    tensors: Callable[[], Iterable[tuple[str, Any]]] | None = None


@dataclass(frozen=True)
class Receipt:
    """From one replica, after `stage`, `activate` or `revert`: whether it did as asked, and if not, why.

    Attributes:
        serves: number of the publication that it answers with now, -1 before the first; None where it cannot tell.
    """

    replica: int
    ok: bool
    serves: int | None
    detail: str = ""


def total_digest(parts: Iterable[Part]) -> str:
    """SHA-256 over what was written where, and the digests of it."""
    ordered = sorted(parts, key=lambda part: part.start)
    return hashlib.sha256(
        str([(part.name, part.start, part.size, part.digest) for part in ordered]).encode()
    ).hexdigest()


def merged(shares: Sequence[Shipment]) -> Shipment:
    """One shipment from what each trainer rank has written of it."""
    parts = tuple(part for share in shares for part in share.parts)
    if not parts:
        return shares[0]
    return replace(shares[0], bytes=sum(share.bytes for share in shares), parts=parts, digest=total_digest(parts))
