"""What a cell asks of the reference loop, as one frozen object. Standard library only."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True)
class Decoding:
    """The sampling rule, a part of the behaviour policy [12.1.4].

    Attributes:
        top_k: 0 is off.
        min_p: 0 is off.
        stop_at_eos: False on the fixed-length track: end-of-sequence is then sampled like any other token.
    """

    temperature: float
    top_p: float
    top_k: int
    min_p: float
    max_tokens: int
    stop_at_eos: bool


@dataclass(frozen=True)
class Objective:
    """The loss of a minibatch [12.4.1]; `loss` is `token_mean` or `sequence_mean`."""

    clip_low: float
    clip_high: float
    loss: str
    kl_beta: float
    advantage_std: str
    std_ddof: int
    advantage_eps: float
    mask_truncated: bool


@dataclass(frozen=True)
class Optimizer:
    """AdamW with gradient clipping at a constant learning rate."""

    learning_rate: float
    adam_beta1: float
    adam_beta2: float
    adam_eps: float
    weight_decay: float
    max_grad_norm: float
    gradient_checkpointing: bool


@dataclass(frozen=True)
class Pools:
    """Who does the work of a disaggregated cell, each a process with `*_threads` threads.

    Attributes:
        ray_address: a running cluster; None starts one on this machine and ends it with the cell.
    """

    replicas: int
    verifiers: int
    trainer_ranks: int
    rollout_threads: int
    trainer_threads: int
    ray_address: str | None


@dataclass(frozen=True)
class QueueLimits:
    """When no new work is admitted [12.3.4]; None is no limit. Work in flight is never cut, so depth may overshoot.

    Attributes:
        age_s: of the oldest record that waits.
        lag: optimizer steps that the oldest record that waits is behind.
    """

    records: int | None
    tokens: int | None
    bytes: int | None
    age_s: float | None
    lag: int | None


@dataclass(frozen=True)
class Staleness:
    """What is done about stale records [12.4.4]; None, `none` and False are off.

    Attributes:
        max_lag: records that are further behind at their first optimizer step are dropped.
        max_age_s: records that have waited longer than this many seconds are dropped.
        correction: `none`, `clip` (importance weights capped at `cap`) or `mask` (tokens above `cap` count nothing).
        level: `token` or `sequence`.
        ess_floor: below this ESS/n of a batch its learning rate is multiplied by ESS/n.
        stale_epochs: inner epochs over a batch that holds any stale record.
        rebalance: one request in flight less while the queue grows, one more while the trainer starves.
        sync_every: every so many batches, one is generated and trained on at lag 0.
    """

    max_lag: int | None
    max_age_s: float | None
    correction: str
    level: str
    cap: float
    ess_floor: float | None
    stale_epochs: int | None
    rebalance: bool
    sync_every: int | None


@dataclass(frozen=True)
class Checkpointing:
    """When and how state is kept [12.5.1].

    Attributes:
        every: batches trained on between two checkpoints; 0 keeps none.
        mtbf_s: mean seconds between failures; where it is given the interval is sqrt(2 C M) with the measured C.
        background: written by a thread, off the critical path.
        keep: newest checkpoints that stay on disk.
        queue: `keep` what waits, with its behaviour versions, or `discard` it at a restore.
        restore: `full`, or `weights` for the branch that restores nothing else.
    """

    every: int
    mtbf_s: float | None
    background: bool
    keep: int
    queue: str
    restore: str


@dataclass(frozen=True)
class Lora:
    """A low-rank adapter is trained instead of all weights where `rank` is above 0."""

    rank: int
    alpha: float


@dataclass(frozen=True)
class Settings:
    """A cell's work. `minibatches` and `inner_epochs` count optimizer steps over one generated batch, `micro_batches`
    the forward passes of one optimizer step; `verify_every` counts publications between two checks of the engine.

    Attributes:
        attempt: 0, or how often this cell was started before and died.
        fault: what a drill does to the cell; empty where it does nothing.
        publication: `full`, `sharded` or `adapter`; a shared module is handed over whatever it says.
        versions: `one` a completion (a publication waits for requests in flight), one a `turn`, or one a `token`.
        logprobs: the regime [12.4.3]: `recompute` the old log-probs in the trainer, take the `engine`'s, or `unified`.
        lag_bound: updates that a batch may be behind at its first optimizer step; for the asynchronous layout.
    """

    run_id: str
    directory: Path
    bundle: Path
    device: str
    threads: int
    seed: int
    attempt: int
    fault: Mapping[str, Any]
    layout: str
    lag_bound: int
    engine: str
    verify_every: int
    publication: str
    versions: str
    logprobs: str
    pools: Pools
    queue: QueueLimits
    staleness: Staleness
    checkpoint: Checkpointing
    lora: Lora
    steps: int
    prompts_per_batch: int
    group_size: int
    minibatches: int
    micro_batches: int
    inner_epochs: int
    verifier_timeout_s: float
    decoding: Decoding
    objective: Objective
    optimizer: Optimizer

    @classmethod
    def from_cell(cls, cell: Mapping[str, Any]) -> Self:
        """The settings of a `cell.json`."""
        task, options = cell["task"], cell["adapter_options"]
        return cls(
            run_id=cell["run_id"],
            directory=Path(cell["directory"]),
            bundle=Path(cell["bundle"]),
            device=cell["profile"]["device"],
            threads=cell["profile"]["threads"],
            seed=cell["seed"],
            attempt=cell["attempt"],
            fault=cell["fault"],
            layout=cell["layout"]["name"],
            lag_bound=cell["layout"]["lag_bound"],
            **{name: options[name] for name in _CHOICES},
            pools=Pools(**options["pools"]),
            queue=QueueLimits(**options["queue"]),
            staleness=Staleness(**options["staleness"]),
            checkpoint=Checkpointing(**options["checkpoint"]),
            lora=Lora(**options["lora"]),
            decoding=Decoding(**_pick(Decoding, task, stop_at_eos=cell["track"] != "fixed_length")),
            objective=Objective(**_pick(Objective, task)),
            optimizer=Optimizer(**_pick(Optimizer, task)),
            **{name: task[name] for name in _COUNTS},
        )

    def trace_id(self, batch: int) -> str:
        """What ties a generated batch's spans and records together; an attempt's own, as it may generate it anew."""
        return f"gen-{batch}" + (f"~{self.attempt}" if self.attempt else "")

    @property
    def batch_size(self) -> int:
        """Completions of one generated batch."""
        return self.prompts_per_batch * self.group_size

    @property
    def updates_per_batch(self) -> int:
        """Optimizer steps over one generated batch."""
        return self.minibatches * self.inner_epochs

    @property
    def needs_old(self) -> bool:
        """Whether the trainer computes old log-probs: several updates need a frozen old policy, the learning rate needs
        the ratios where it follows ESS. With one update the ratio is 1 by construction; in other regimes than
        `recompute` the behaviour policy is the old one."""
        return self.logprobs == "recompute" and (self.updates_per_batch > 1 or self.staleness.ess_floor is not None)

    @property
    def needs_scoring(self) -> bool:
        """Whether a batch's samples are scored before training: a KL term needs the reference's log-probs."""
        return self.needs_old or self.objective.kl_beta != 0.0

    @property
    def batches(self) -> int:
        """Generated batches of the run; the last may be trained on in part only."""
        return -(-self.steps // self.updates_per_batch)


_CHOICES = ("engine", "verify_every", "publication", "versions", "logprobs")
_COUNTS = (
    "steps",
    "prompts_per_batch",
    "group_size",
    "minibatches",
    "micro_batches",
    "inner_epochs",
    "verifier_timeout_s",
)


def _pick(kind: type, task: Mapping[str, Any], **given: Any) -> dict[str, Any]:
    return given | {name: task[name] for name in kind.__annotations__ if name not in given}
