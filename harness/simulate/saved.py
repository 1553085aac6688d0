"""What a simulated checkpoint holds [12.5.1]."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.simulate.records import Group, Sample
from harness.simulate.settings import Batch

QUEUE_DISCARDED = "queue_discarded"
"""Why a record is dropped that waited in the queue of a checkpoint which does not keep it."""


@dataclass(frozen=True)
class Saved:
    """Where the job was; `waiting` are the queue's groups, each with the samples that it had."""

    step: int
    version: int
    publication: int
    batch: int
    waiting: Sequence[tuple[Group, list[Sample]]]

    def batches(self, rule: Batch) -> list[list[Sample]]:
        """What waits, in the batches that it will make."""
        batches: list[list[Sample]] = [[]]
        size, wanted = 0, rule.groups or rule.tokens or 1
        for group, samples in self.waiting:
            if size >= wanted:
                batches.append([])
                size = 0
            batches[-1] += samples
            size += 1 if rule.groups else group.tokens
        return batches


BEGINNING = Saved(0, 0, -1, 0, [])
"""Where a job is before its first checkpoint."""
