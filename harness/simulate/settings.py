"""What is simulated, as one frozen object. Times in seconds, sizes in tokens, records or bytes; null is no limit."""

from dataclasses import dataclass
from typing import ClassVar

from harness.simulate.draws import Distribution


@dataclass(frozen=True)
class Batch:
    """When the trainer has enough: `groups` whole groups, or whole groups with at least `tokens` policy tokens
    together. `minibatches` and `inner_epochs` count optimizer steps over one such batch."""

    groups: int | None
    tokens: int | None
    minibatches: int
    inner_epochs: int
    POSITIVE: ClassVar = ("groups", "tokens", "minibatches", "inner_epochs")

    @property
    def updates(self) -> int:
        """Optimizer steps over one batch."""
        return self.minibatches * self.inner_epochs


@dataclass(frozen=True)
class Rollout:
    """The replicas of the engine. A decoding step of a replica with n sequences takes `step_s + n *
    step_s_per_sequence` and gives each a token; a prefill stalls it for `prefill_s_per_token` a token.

    Attributes:
        slots: sequences that decode together in one replica.
        kv_tokens: what a replica's cache holds; a sequence reserves what it will hold at its end.
        request: what is asked of one replica at once: a `sample`, a `group` (its prompt is prefilled once), or the
            replica's `part` of a batch, one after the other.
        mtbf_s: mean seconds between failures of one replica; its work is lost and asked for again.
        repair_s: until it is back.
    """

    replicas: int
    slots: int
    kv_tokens: int | None
    request: str
    step_s: float
    step_s_per_sequence: float
    prefill_s_per_token: float
    mtbf_s: float | None
    repair_s: float
    POSITIVE: ClassVar = ("replicas", "slots", "kv_tokens", "mtbf_s")
    CHOICES: ClassVar = {"request": ("sample", "group", "part")}

    def step(self, sequences: int) -> float:
        """Seconds of a decoding step with that many."""
        return self.step_s + sequences * self.step_s_per_sequence


@dataclass(frozen=True)
class Verifier:
    """`workers` score one completion after another in `seconds`; one that takes `timeout_s` is an error, never a 0."""

    workers: int
    seconds: Distribution
    timeout_s: float
    POSITIVE: ClassVar = ("workers", "timeout_s")


@dataclass(frozen=True)
class Trainer:
    """Seconds of a batch: `logprob_s_per_token` once, then for each optimizer step `fixed_s` and `s_per_token`, times
    a `jitter` with the mean 1. `mtbf_s`: mean seconds between failures, from which the job restarts at its newest
    checkpoint after `restart_s`."""

    fixed_s: float
    s_per_token: float
    optimizer_s: float
    logprob_s_per_token: float
    jitter: Distribution
    mtbf_s: float | None
    restart_s: float
    POSITIVE: ClassVar = ("mtbf_s",)

    def seconds(self, tokens: float, batch: Batch) -> float:
        """Mean seconds of a batch with that many policy tokens."""
        passes = batch.inner_epochs * tokens * self.s_per_token + batch.updates * (self.fixed_s + self.optimizer_s)
        return passes + tokens * self.logprob_s_per_token


@dataclass(frozen=True)
class Publication:
    """The trainer prepares a version in `prepare_s`; all replicas take it up in `activate_s`, a barrier. `in_flight`:
    `wait` lets running requests end first, `pause` stops them meanwhile, so that a completion may have several
    versions. `bytes` are what it moves; 0 where trainer and engine share their weights."""

    prepare_s: float
    activate_s: float
    bytes: int
    in_flight: str
    CHOICES: ClassVar = {"in_flight": ("wait", "pause")}


@dataclass(frozen=True)
class Limits:
    """When no new work is admitted [12.3.4], as in the reference loop: `age_s` and `lag` of the oldest record that
    waits. Work in flight is never cut."""

    records: int | None
    tokens: int | None
    bytes: int | None
    age_s: float | None
    lag: int | None


@dataclass(frozen=True)
class Staleness:
    """What is done about stale records [12.4.4], as in the reference loop."""

    max_lag: int | None
    max_age_s: float | None
    correction: str
    level: str
    cap: float
    ess_floor: float | None
    stale_epochs: int | None
    rebalance: bool
    sync_every: int | None
    POSITIVE: ClassVar = ("cap", "stale_epochs", "sync_every")
    SHARES: ClassVar = ("ess_floor",)
    CHOICES: ClassVar = {"correction": ("none", "clip", "mask"), "level": ("token", "sequence")}


@dataclass(frozen=True)
class Checkpoint:
    """Every so many batches (0: none), in `seconds`, in the `background` or not; `queue` is kept or discarded at a
    restart."""

    every: int
    seconds: float
    background: bool
    queue: str
    CHOICES: ClassVar = {"queue": ("keep", "discard")}


@dataclass(frozen=True)
class Synthetic:
    """What no simulation can know, made up: `right` is the chance that a completion is right; `log w` of a token is
    normal with the mean `-s^2/2` (so that the mean weight is 1) and the deviation `s = ratio_sd + lag *
    ratio_sd_per_lag`."""

    right: float
    ratio_sd: float
    ratio_sd_per_lag: float
    SHARES: ClassVar = ("right",)

    def deviation(self, lag: float) -> float:
        """s at a lag in updates."""
        return self.ratio_sd + lag * self.ratio_sd_per_lag


@dataclass(frozen=True)
class Settings:
    """A simulated cell.

    Attributes:
        seconds: it ends with the first optimizer step that ends then or later; `steps`: or with that many.
        lag_bound: updates that a batch may be behind at its first one; for the asynchronous loop.
        order: groups are put into the queue in the order in which they were `asked` for, or `finished`.
    """

    name: str
    seed: int
    seconds: float | None
    steps: int | None
    warmup_steps: int
    synchrony: str
    placement: str
    lag_bound: int | None
    order: str
    group_size: int
    prompt_tokens: Distribution
    response_tokens: Distribution
    batch: Batch
    rollout: Rollout
    verifier: Verifier
    trainer: Trainer
    publication: Publication
    queue: Limits
    staleness: Staleness
    checkpoint: Checkpoint
    synthetic: Synthetic
    POSITIVE: ClassVar = ("seconds", "steps", "group_size")
    CHOICES: ClassVar = {
        "synchrony": ("synchronous", "asynchronous"),
        "placement": ("colocated", "disaggregated"),
        "order": ("asked", "finished"),
    }

    @property
    def synchronous(self) -> bool:
        """Whether a strict barrier stands between rollout and training."""
        return self.synchrony == "synchronous"

    @property
    def layout(self) -> str:
        """Its name in reports."""
        return self.name
