"""How much longer stages take where more processes want to compute at once than a machine has cores."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

ROUNDS = 50


@dataclass(frozen=True)
class Role:
    """What one side of a loop needs for a batch: `seconds` in which `wanted` cores are used."""

    seconds: float
    wanted: float


def stretched(roles: Sequence[Role], cores: float, *, overlap: bool) -> list[float]:
    """By role the factor on its seconds, if whoever wants to compute shares the cores evenly (processor sharing).

    Where nothing overlaps, a role competes with itself alone. Where all overlap, each is busy for its share of the
    period, taken to be independent of the others: a factor is the mean of `max(1, wanted / cores)` over who else is
    busy. It follows from counts; what processes take from one another beyond cores (memory, caches) is not in it.
    """
    factors = [max(1.0, role.wanted / cores) for role in roles]
    if not overlap:
        return factors
    for _ in range(ROUNDS):
        busy = [role.seconds * factor for role, factor in zip(roles, factors, strict=True)]
        period = max(busy)
        shares = [seconds / period if period else 0.0 for seconds in busy]
        factors = [_mean_factor(roles, shares, place, cores) for place in range(len(roles))]
    return factors


def _mean_factor(roles: Sequence[Role], shares: Sequence[float], place: int, cores: float) -> float:
    mean = 0.0
    for active in product((False, True), repeat=len(roles)):
        if not active[place]:
            continue
        chance, wanted = 1.0, 0.0
        for other, on in enumerate(active):
            chance *= 1.0 if other == place else shares[other] if on else 1 - shares[other]
            wanted += roles[other].wanted if on else 0.0
        mean += chance * max(1.0, wanted / cores)
    return mean
