"""What a simulated loop tells of itself while it runs; figures are kept of it, and a ledger where one is asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.simulate.records import Group, Request, Sample


@dataclass(frozen=True)
class Step:
    """An optimizer step. `samples` are what it consumed; `first` is where its forward and backward passes began."""

    number: int
    batch: int
    epoch: int
    minibatch: int
    version: int
    published: int
    samples: Sequence[Sample]
    start: float
    middle: float
    end: float
    lr_scale: float


class Recorder(Protocol):
    """Times are simulated seconds."""

    def queue(
        self, t: float, event: str, records: int, tokens: int, depth: tuple[int, int, int], reason: str | None
    ) -> None:
        """An event of the queue; `depth` in records, tokens and bytes after it."""

    def waited(self, start: float, end: float, records: int) -> None:
        """The trainer waited for data."""

    def taken(self, batch: int, groups: Sequence[Group], version: int, t: float) -> None:
        """A batch left the queue and is trained on next."""

    def scored(self, batch: int, version: int, start: float, end: float, samples: Sequence[Sample]) -> None:
        """The trainer computed log-probs of a batch."""

    def stepped(self, step: Step) -> None:
        """An optimizer step was applied."""

    def batch_done(self, batch: int, version: int, samples: Sequence[Sample], t: float) -> None:
        """A batch was trained on, first at `version`."""

    def published(self, number: int, version: int, prepared: tuple[float, float], served: tuple[float, float]) -> None:
        """A version was prepared by the trainer and taken up by all replicas."""

    def dropped(self, samples: Sequence[tuple[Sample, str]], t: float) -> None:
        """Completions were thrown away, each with its reason."""

    def lost(self, requests: Sequence[Request], worker: str, t: float) -> None:
        """A replica died with these requests, which are asked for again."""

    def saved(self, batches: Sequence[Sequence[Sample]]) -> None:
        """A checkpoint's content was taken, with the batches that waited in the queue then."""

    def checkpointed(self, step: int, version: int, start: float, end: float) -> None:
        """That checkpoint was written."""

    def died(self, requests: Sequence[Request], samples: Sequence[Sample], t: float) -> None:
        """The whole job died, with what was in flight and what waited and is in no checkpoint."""

    def restarted(self, step: int, version: int, died: float, ready: float) -> None:
        """It goes on from its newest checkpoint, or from the beginning."""

    def left(self, samples: Sequence[Sample], t: float) -> None:
        """What nobody trained on when the run ended."""
