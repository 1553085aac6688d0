"""What an engine's actor says of a completion; it rides to the trainer in the sample's label. Standard library only."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any, Self

RECORDS = "rlaxes_records"
"""Key under which a rank's records leave in the dictionary that `fit` returns, followed by the rank's number."""


@dataclass
class Completion:
    """One completion as the engine's actor saw it.

    Attributes:
        row: the line of the data set; index: its place in the group.
        logprobs: of the distribution really sampled, one a token.
        served: for each token how many broadcasts the engine had taken in when it arrived, run-length encoded.
        stop_reason: `eos`, `stop` or `length`, as vLLM reports it.
        reward: None where no verdict was reached.
        decoding: what the engine's sampling parameters held: those of the rollouts' column, and `ignore_eos`.
        times: columns `t_*` of the rollouts table (perf_counter_ns).
    """

    row: int
    index: int
    replica: int
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    served: list[list[int]] = field(default_factory=list)
    stop_reason: str = "length"
    text: str = ""
    reward: float | None = None
    components: dict[str, float] = field(default_factory=dict)
    error: str | None = None
    decoding: dict[str, Any] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)

    @property
    def token_served(self) -> list[int]:
        """The same, one number a token."""
        return [number for number, count in self.served for _ in range(count)]

    def to_label(self) -> str:
        """As the label of an experience."""
        return json.dumps(asdict(self))

    @classmethod
    def from_label(cls, label: str) -> Self:
        """What `to_label` gave."""
        return cls(**json.loads(label))


def run_lengths(numbers: Sequence[int]) -> list[list[int]]:
    """`[[number, how often in a row], ...]`."""
    return [[number, len(list(run))] for number, run in groupby(numbers)]


@dataclass(frozen=True)
class Names:
    """The ids of a sample: N is the dispatch round in which its prompt was handed out."""

    prompt_id: str
    batch: int
    index: int

    @property
    def group_id(self) -> str:
        """`<prompt>.b<N>`."""
        return f"{self.prompt_id}.b{self.batch}"

    @property
    def sample_id(self) -> str:
        """`<prompt>.b<N>.g<index>`."""
        return f"{self.group_id}.g{self.index}"


def trace_of(batch: int, attempt: int) -> str:
    """The id that spans of a generated batch carry; an attempt's own, as it may generate the batch anew."""
    return f"gen-{batch}" + (f"~{attempt}" if attempt else "")


def names_of(rows: Sequence[dict[str, Any]], completion: Completion, prompts_per_batch: int) -> Names:
    """`rows` are the data set's lines."""
    return Names(rows[completion.row]["prompt_id"], completion.row // prompts_per_batch, completion.index)
