"""Which episodes rejection by staleness meets [12.4.4]: a simulation with the queue and the policy of the loop.

Time is counted in tokens: a slot of the engine samples one token a tick and then starts another episode with the
weights of that moment; the trainer takes a batch as soon as one waits and is busy for some ticks with it.
"""

import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import gettempdir
from typing import cast

import pytest

from adapters.reference.queue import RolloutQueue
from adapters.reference.samples import Sample
from adapters.reference.staleness import StalenessPolicy
from harness.probe import Probe
from tests.adapters.reference.cells import settings
from tests.adapters.reference.groups import Queued, sample

BATCH, SLOTS, TICKS, TRAINING_TICKS = 8, 16, 12_000, 20
SHORT, LONG = 8, 160
MAX_LAG = 3


@dataclass
class Run:
    """What a simulation left behind: the lengths of what was trained on and of what was rejected."""

    trained: list[int] = field(default_factory=list)
    rejected: list[int] = field(default_factory=list)
    lags: list[int] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """The figure `rejected_length_ratio`."""
        return statistics.fmean(self.rejected) / statistics.fmean(self.trained)


class Simulation:
    """Episodes of two lengths; `hand_over` decides in which order what is finished enters the queue."""

    def __init__(self, seed: int, hand_over: Callable[[list[Sample], int], list[Sample]]) -> None:
        plain = settings(Path(gettempdir()), task={"prompts_per_batch": BATCH})
        bounded = replace(plain, staleness=replace(plain.staleness, max_lag=MAX_LAG))
        self.queue = RolloutQueue(bounded, cast(Probe, Queued()))
        self.policy, self.draw, self.hand_over = StalenessPolicy(bounded), random.Random(seed), hand_over
        self.version = self.asked = self.free_at = 0
        self.slots: list[tuple[int, Sample]] = []
        self.finished: list[Sample] = []
        self.run = Run()

    def go(self) -> Run:
        """Simulate."""
        for now in range(TICKS):
            self.finished += [one for end, one in self.slots if end <= now]
            self.slots = [(end, one) for end, one in self.slots if end > now]
            while len(self.slots) < SLOTS:
                self.slots.append(self._episode(now))
            for one in self.hand_over(self.finished, len(self.queue)):
                self.finished.remove(one)
                self.queue.put([one], now)
            if now >= self.free_at:
                self._train(now)
        return self.run

    def _episode(self, now: int) -> tuple[int, Sample]:
        length = LONG if self.draw.random() < 0.2 else SHORT
        self.asked += 1
        return now + length, sample(f"p{self.asked - 1}.g0", length, self.version)

    def _train(self, now: int) -> None:
        gone = self.queue.drop(lambda one, waited: self.policy.rejects(one, self.version, waited), now)
        self.run.rejected += [one.completion.policy_tokens for one, _ in gone]
        if taken := self.queue.get(BATCH, now):
            self.run.trained += [one.completion.policy_tokens for one in taken]
            self.run.lags += [self.version - one.policy_version for one in taken]
            self.version, self.free_at = self.version + 1, now + TRAINING_TICKS


def _number(one: Sample) -> int:
    return int(one.sample_id.removeprefix("p").partition(".")[0])


def first_come(finished: list[Sample], waiting: int) -> list[Sample]:
    """Each as it finishes."""
    return list(finished)


class WholeBatches:
    """As the loop does it: batches whole, in the order in which they were asked for."""

    def __init__(self) -> None:
        self.next = 0

    def __call__(self, finished: list[Sample], waiting: int) -> list[Sample]:
        wanted = range(self.next * BATCH, (self.next + 1) * BATCH)
        batch = sorted((one for one in finished if _number(one) in wanted), key=_number)
        if len(batch) < BATCH:
            return []
        self.next += 1
        return batch


@pytest.mark.parametrize("seed", range(3))
def test_first_come_rejection_favours_short_episodes(seed: int) -> None:
    run = Simulation(seed, first_come).go()
    assert len(run.rejected) > 50
    assert max(run.lags) <= MAX_LAG, "nothing staler than the bound is trained on"
    assert run.ratio > 2
    generated = [*run.trained, *run.rejected]
    assert statistics.fmean(run.trained) < statistics.fmean(generated), (
        "what is trained on is shorter than the policy's"
    )


@pytest.mark.parametrize("seed", range(3))
def test_whole_batches_in_order_are_rejected_whatever_their_length(seed: int) -> None:
    run = Simulation(seed, WholeBatches()).go()
    assert len(run.rejected) > 50
    assert max(run.lags) <= MAX_LAG
    assert 0.85 < run.ratio < 1.15
