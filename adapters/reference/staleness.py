"""What is done about stale records [12.4.4]: decisions only; who asks carries them out. Standard library only.

Each policy is paid for, and says so in its reason: rejection in tokens thrown away, and, where records are put as they
finish, in long completions above all, which take longer to arrive; fewer epochs and a smaller learning rate in progress
a rollout; a control batch in overlap.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from adapters.reference.samples import Sample
from adapters.reference.settings import Settings

REJECTED = "rejected_stale"
"""How the reason of a record that was rejected as stale begins."""


@dataclass(frozen=True)
class Plan:
    """How a batch is to be trained on: `epochs` inner epochs at `lr_scale` times the learning rate; `reasons` name each
    policy that changed either, with the value that made it."""

    epochs: int
    lr_scale: float
    reasons: tuple[str, ...]


class StalenessPolicy:
    """The cell's `staleness` settings as decisions."""

    def __init__(self, settings: Settings) -> None:
        self._staleness, self._epochs = settings.staleness, settings.inner_epochs

    def rejects(self, sample: Sample, policy_version: int, waited_s: float) -> str | None:
        """Why a record is too old to be trained on at `policy_version`, or None.

        Records are rejected one by one, not whole groups: a group's rewards were compared when all of it was there, so
        what is left keeps its advantages, and no fresh record is thrown away with a stale one.
        """
        most, longest = self._staleness.max_lag, self._staleness.max_age_s
        lag = policy_version - sample.policy_version
        if most is not None and lag > most:
            return f"{REJECTED}: lag {lag}, max_lag {most}"
        if longest is not None and waited_s > longest:
            return f"{REJECTED}: waited longer than max_age_s {longest:g}"
        return None

    def plan(self, samples: Sequence[Sample], policy_version: int) -> Plan:
        """Epochs and learning rate of a batch that is scored and about to be trained on at `policy_version`."""
        reasons, epochs, scale = [], self._epochs, 1.0
        fewer, floor = self._staleness.stale_epochs, self._staleness.ess_floor
        lag = max((policy_version - sample.policy_version for sample in samples), default=0)
        if fewer is not None and lag > 0 and fewer < epochs:
            epochs = fewer
            reasons.append(f"stale_epochs: {fewer} of {self._epochs} epochs at lag {lag}")
        share = None if floor is None else ess_share(samples, self._staleness.level)
        if floor is not None and share is not None and share < floor:
            scale = share
            reasons.append(f"ess_floor: learning rate x {share:.3f}, ESS/n below {floor:g}")
        return Plan(epochs, scale, tuple(reasons))

    def is_control(self, batch: int) -> bool:
        """Whether generated batch `batch` is a synchronous control: asked for only when all before it are trained on
        and published, so that its lag is 0."""
        every = self._staleness.sync_every
        return every is not None and batch % every == 0

    def rebalanced(self, requests: int, growth: int, starved: bool, most: int) -> int:
        """How many requests to keep in flight from now on, from 1 to `most`: one more where the trainer `starved`
        since the last batch was taken, one less where the queue grew by `growth` > 0 tokens since then."""
        if not self._staleness.rebalance:
            return requests
        step = 1 if starved else -1 if growth > 0 else 0
        return min(max(requests + step, 1), most)


def ess_share(samples: Sequence[Sample], level: str) -> float | None:
    """ESS/n of the importance weights `old / behaviour` of scored samples, from 1/n to 1; None where none is scored.

    Args:
        level: `sequence` weighs each sample by the product of its tokens' ratios, `token` each token by its own.
    """
    weights: list[float] = []
    for sample in samples:
        if sample.old is not None:
            pairs = zip(sample.old, sample.completion.logprobs, strict=True)
            logs = [ours - theirs for ours, theirs in pairs if ours is not None and theirs is not None]
            weights += logs if level == "token" else [math.fsum(logs)]
    if not weights:
        return None
    top = max(weights)
    scaled = [math.exp(weight - top) for weight in weights]
    share = math.fsum(scaled) ** 2 / math.fsum(weight * weight for weight in scaled) / len(scaled)
    return min(share, 1.0)  # rounding may say a little more
