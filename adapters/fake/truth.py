"""The truth that the fake loop is told, and what follows from it for one sample."""

from dataclasses import dataclass, fields
from typing import Any, Self


@dataclass(frozen=True)
class Truth:
    """The settings of `conf/adapter/fake.yaml`; times in milliseconds."""

    mode: str
    slow_s: float
    prompt_tokens: int
    lengths: list[int]
    log_ratio: float
    log_ratio_per_lag: float
    degenerate_every: int
    drop_every: int
    error_every: int
    left_in_flight: int
    gap_ms: float
    stage_ms: dict[str, float]

    @classmethod
    def of(cls, options: dict[str, Any]) -> Self:
        """The truth in a cell's adapter options."""
        return cls(**{field.name: options[field.name] for field in fields(cls)})


def every(number: int, period: int) -> bool:
    """Is `number` (from 0) the last of its period? Never, where the period is 0."""
    return period > 0 and number % period == period - 1


@dataclass(frozen=True)
class Sample:
    """One made-up completion; `number` counts all completions of the run from 0."""

    number: int
    prompt_id: str
    batch: int
    place: int
    length: int
    version: int
    reward: float | None
    dropped: bool

    @property
    def group_id(self) -> str:
        """The prompt in its batch."""
        return f"{self.prompt_id}.b{self.batch}"

    @property
    def sample_id(self) -> str:
        """The completion in its group."""
        return f"{self.group_id}.g{self.place}"


def make_batch(truth: Truth, task: dict[str, Any], track: str, batch: int, version: int) -> list[Sample]:
    """The completions of a generated batch. Rewards alternate 0, 1 within a group, or are all 1 in a degenerate one."""
    size, prompts = task["group_size"], task["prompts_per_batch"]
    samples = []
    for index in range(prompts * size):
        number = batch * prompts * size + index
        group = batch * prompts + index // size
        length = min(truth.lengths[number % len(truth.lengths)], task["max_tokens"])
        reward = 1.0 if every(group, truth.degenerate_every) else float(index % size % 2)
        failed = every(number, truth.error_every)
        samples.append(
            Sample(
                number=number,
                prompt_id=f"p{index // size}",
                batch=batch,
                place=index % size,
                length=task["max_tokens"] if track == "fixed_length" else length,
                version=version,
                reward=None if failed else reward,
                dropped=failed or every(number, truth.drop_every),
            )
        )
    return samples
