"""The truth that the fake loop is told, and what follows from it for one completion."""

import math
import random
from dataclasses import dataclass, fields
from typing import Any, Self

BEHAVIOR_LOGPROB = -0.5
"""What the made-up engine reports for every token that it samples."""
SLOWED: dict[str, float] = {}
"""How many times as long as told, by stage: a commit that fills it is a regression of known size."""


@dataclass(frozen=True)
class Truth:
    """The settings of `conf/adapter/fake.yaml`; times in milliseconds."""

    mode: str
    slow_s: float
    ahead: int
    prompt_tokens: int
    lengths: list[int]
    log_ratios: list[float]
    log_ratio_per_lag: float
    logprob_kind: str
    degenerate_every: int
    drop_every: int
    stale_every: int
    error_every: int
    unknown_every: int
    zero_gradient_every: int
    left_in_flight: bool
    published_bytes: int
    gap_ms: float
    noise: float
    stage_ms: dict[str, float]

    @classmethod
    def of(cls, options: dict[str, Any]) -> Self:
        """The truth in a cell's adapter options."""
        return cls(**{field.name: options[field.name] for field in fields(cls)})

    def taken_ms(self, cell: dict[str, Any]) -> dict[str, float]:
        """What each stage takes in a cell: as told, at the pace that the noise draws for it."""
        chance = random.Random(f"{cell['cell_id']} {cell['seed']}")
        pace = math.exp(chance.gauss(0.0, self.noise))
        return {stage: ms * pace * SLOWED.get(stage, 1.0) for stage, ms in self.stage_ms.items()}


def every(number: int, period: int) -> bool:
    """Is `number` (from 0) the last of its period? Never, where the period is 0."""
    return period > 0 and number % period == period - 1


@dataclass(frozen=True)
class Sample:
    """One made-up completion.

    Attributes:
        number: counts all completions of the run from 0; `place`: within its group.
        log_ratio: log w of each of its tokens at lag 0.
        known: whether the engine reports its log-probs.
        lost: why no step will consume it, or None.
    """

    number: int
    prompt_id: str
    batch: int
    place: int
    length: int
    version: int
    reward: float | None
    advantage: float | None
    log_ratio: float
    known: bool
    lost: str | None
    group_complete: bool

    @property
    def group_id(self) -> str:
        """The prompt in its batch."""
        return f"{self.prompt_id}.b{self.batch}"

    @property
    def sample_id(self) -> str:
        """The completion in its group."""
        return f"{self.group_id}.g{self.place}"

    @property
    def status(self) -> str:
        """As in the contract."""
        return {"verifier_error": "infrastructure_error", "rejected_stale": "rejected_stale"}.get(self.lost or "", "ok")


def make_batch(truth: Truth, task: dict[str, Any], track: str, batch: int, version: int) -> list[Sample]:
    """The completions of a generated batch, group by group."""
    groups = range(batch * task["prompts_per_batch"], (batch + 1) * task["prompts_per_batch"])
    return [sample for group in groups for sample in _make_group(truth, task, track, group, version)]


def _make_group(truth: Truth, task: dict[str, Any], track: str, group: int, version: int) -> list[Sample]:
    """Rewards alternate 0, 1 within a group, or are all 1 in a degenerate one; the advantage is the reward less the
    mean of those that the verifier gave."""
    size, alike = task["group_size"], every(group, truth.degenerate_every)
    numbers = range(group * size, (group + 1) * size)
    failed = [every(number, truth.error_every) for number in numbers]
    rewards = [None if bad else 1.0 if alike else float(i % 2) for i, bad in enumerate(failed)]
    given = [reward for reward in rewards if reward is not None]
    mean = sum(given) / len(given) if given else 0.0
    return [
        Sample(
            number=number,
            prompt_id=f"p{group % task['prompts_per_batch']}",
            batch=group // task["prompts_per_batch"],
            place=place,
            length=_length(truth, task, track, number),
            version=version,
            reward=rewards[place],
            advantage=None if rewards[place] is None else rewards[place] - mean,  # type: ignore[operator]
            log_ratio=truth.log_ratios[number % len(truth.log_ratios)],
            known=not every(number, truth.unknown_every),
            lost=_lost(truth, number, failed[place]),
            group_complete=len(given) == size,
        )
        for place, number in enumerate(numbers)
    ]


def _length(truth: Truth, task: dict[str, Any], track: str, number: int) -> int:
    longest: int = task["max_tokens"]
    return longest if track == "fixed_length" else min(truth.lengths[number % len(truth.lengths)], longest)


def _lost(truth: Truth, number: int, failed: bool) -> str | None:
    if failed:
        return "verifier_error"
    if every(number, truth.stale_every):
        return "rejected_stale"
    return "filtered" if every(number, truth.drop_every) else None
