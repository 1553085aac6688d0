"""Between collector and trainer: a batch comes in whole, goes out as minibatches, and every sample's end is counted.

Colocated and synchronous, it holds one batch at a time, so nothing waits in it and no record is stale.
"""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

from adapters.reference.samples import Sample, fate_row, rollout_row
from adapters.reference.settings import Settings
from harness.probe import Probe
from harness.task.bundle import Bundle

T = TypeVar("T")


class RolloutBuffer:
    """Holds the samples of one generated batch until they are trained on or dropped."""

    def __init__(self, settings: Settings, bundle: Bundle, probe: Probe) -> None:
        self._settings, self._bundle, self._probe = settings, bundle, probe
        decoding = settings.decoding
        self._decoding: dict[str, Any] = {
            "temperature": decoding.temperature,
            "top_p": decoding.top_p,
            "top_k": decoding.top_k,
            "min_p": decoding.min_p,
            "max_tokens": decoding.max_tokens,
            "stop": [],
            "seed": settings.seed,
        }
        self._waiting: list[Sample] = []
        self._trained: set[str] = set()

    def accept(self, samples: Sequence[Sample]) -> list[Sample]:
        """Write a batch whole; returns what may be trained on, the rest is dropped with its reason.

        Raises:
            BatchRefused: a record breaks an invariant; nothing of the batch is taken.
        """
        run_id, mask = self._settings.run_id, self._settings.objective.mask_truncated
        self._probe.accept_rollouts([rollout_row(sample, self._bundle, run_id, self._decoding) for sample in samples])
        reasons = [sample.drop_reason(mask) for sample in samples]
        dropped = [(sample, reason) for sample, reason in zip(samples, reasons, strict=True) if reason is not None]
        self._probe.fates([fate_row(sample, "dropped", reason) for sample, reason in dropped])
        return [sample for sample, reason in zip(samples, reasons, strict=True) if reason is None]

    def hold(self, samples: Sequence[Sample]) -> None:
        """These accepted samples are the batch to be trained on now."""
        self._waiting, self._trained = list(samples), set()

    @property
    def waiting(self) -> list[Sample]:
        """The samples that may be trained on."""
        return self._waiting

    def minibatches(self, batch: int, epoch: int) -> list[list[Sample]]:
        """The waiting samples in `minibatches` parts of equal size (to one): cut from a permutation that the seed, the
        batch and the epoch decide, so that a part mixes groups; in their own order where there is one part."""
        parts = self._settings.minibatches
        if parts == 1:
            return [self._waiting]
        order = list(self._waiting)
        random.Random(seed_of(self._settings.seed, batch, epoch + 1)).shuffle(order)
        return split_evenly(order, parts)

    def consumed(self, samples: Sequence[Sample]) -> None:
        """An optimizer step has trained on these samples."""
        self._trained.update(sample.sample_id for sample in samples)

    def settle(self) -> None:
        """The batch is done with: write the fate of each sample that was not dropped."""
        rows = [
            fate_row(sample, "trained", None)
            if sample.sample_id in self._trained
            else fate_row(sample, "in_flight", "the run's last optimizer step came first")
            for sample in self._waiting
        ]
        self._probe.fates(rows)
        self._waiting = []


def split_evenly(items: Sequence[T], parts: int) -> list[list[T]]:
    """`items` cut into `parts` runs whose sizes differ by one at most, the longer ones first; some may be empty."""
    size, longer = divmod(len(items), parts)
    edges = [part * size + min(part, longer) for part in range(parts + 1)]
    return [list(items[start:end]) for start, end in pairwise(edges)]


def seed_of(seed: int, batch: int, use: int) -> int:
    """A seed of its own for each batch and use (0: sampling, 1 + epoch: the permutation)."""
    return (seed * 1_000_003 + batch) * 1_009 + use
