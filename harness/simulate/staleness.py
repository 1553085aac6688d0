"""What is done about stale records [12.4.4], as the reference loop decides (adapters/reference/staleness.py)."""

from collections.abc import Sequence

from harness.simulate.records import Sample
from harness.simulate.settings import Settings

REJECTED = "rejected_stale"
"""How the reason of a record that was rejected as stale begins."""


class StalenessPolicy:
    """The cell's `staleness` settings as decisions."""

    def __init__(self, settings: Settings) -> None:
        self._asked, self._epochs = settings.staleness, settings.batch.inner_epochs

    @property
    def rejects_any(self) -> bool:
        """Whether any record can be too old."""
        return self._asked.max_lag is not None or self._asked.max_age_s is not None

    def rejects(self, sample: Sample, version: int, waited: float) -> str | None:
        """Why a record is too old to be trained on at `version`, or None."""
        most, longest = self._asked.max_lag, self._asked.max_age_s
        if most is not None and version - sample.version > most:
            return f"{REJECTED}: lag {version - sample.version}, max_lag {most}"
        if longest is not None and waited > longest:
            return f"{REJECTED}: waited longer than max_age_s {longest:g}"
        return None

    def epochs(self, samples: Sequence[Sample], version: int) -> int:
        """Inner epochs over a batch."""
        fewer = self._asked.stale_epochs
        stale = fewer is not None and any(sample.version < version for sample in samples)
        return min(self._epochs, fewer or self._epochs) if stale else self._epochs

    def lr_scale(self, ess_share: float) -> float:
        """What the learning rate of a batch with this ESS/n is multiplied by."""
        floor = self._asked.ess_floor
        return ess_share if floor is not None and ess_share < floor else 1.0

    def is_control(self, batch: int) -> bool:
        """Whether a batch is a synchronous control, asked for only when all before it are trained on and published."""
        every = self._asked.sync_every
        return every is not None and batch % every == 0

    def rebalanced(self, requests: int, growth: int, starved: bool, most: int) -> int:
        """How many requests to keep in flight from now on, from 1 to `most`: one more where the trainer `starved` since
        the last batch was taken, one less where the queue grew by `growth` > 0 tokens since then."""
        if not self._asked.rebalance:
            return requests
        step = 1 if starved else -1 if growth > 0 else 0
        return min(max(requests + step, 1), most)
