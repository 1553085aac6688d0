"""What the roles of the loop say to one another: plain data that crosses a process boundary. Standard library only."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
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
class Shipment:
    """From the trainer to every replica: the weights of one publication.

    Attributes:
        number: of the publication; `policy_version`: of the weights.
        kind: `shared`, `full`, `sharded` or `adapter`.
        path: where the tensors lie, for a replica that is another process.
        digest: over the tensors' bytes; None where nothing moves.
        tensors: the named tensors, for an engine in the trainer's own process.
    """

    number: int
    policy_version: int
    kind: str
    bytes: int
    path: str | None = None
    digest: str | None = None
    tensors: Callable[[], Iterable[tuple[str, Any]]] | None = None


@dataclass(frozen=True)
class Receipt:
    """From one replica: whether it holds (after `stage`) or serves (after `activate`) a shipment, and if not, why."""

    replica: int
    ok: bool
    detail: str = ""
