"""Times of a two-stage pipeline, and what one long completion costs [12.3.1, 12.3.2]."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


def sequential_period(rollout: float, train: float) -> float:
    """`C_seq = G + T`: rollout and reward take G, training and synchronisation T."""
    return rollout + train


def overlapped_period(rollout: float, train: float) -> float:
    """`C_pipe = max(G, T)`, once the pipeline is full."""
    return max(rollout, train)


def pipeline_total(rollout: float, train: float, batches: int) -> float:
    """`T_n = G + T + (n - 1) max(G, T)` for n batches; 0 for none."""
    if batches == 0:
        return 0.0
    return rollout + train + (batches - 1) * overlapped_period(rollout, train)


def overlap_speedup(rollout: float, train: float) -> float:
    """How much shorter the period gets; at most 2, where both stages take the same time."""
    return sequential_period(rollout, train) / overlapped_period(rollout, train)


def straggler_utilisation(times: Sequence[float]) -> float:
    """`U = sum T_i / (n max T_i)`: the share of the ideal rectangle that n workers use, who all wait for the slowest.

    Raises:
        ValueError: no times, or the longest is not above 0.
    """
    if not times or max(times) <= 0:
        raise ValueError("the utilisation of no work is not defined")
    return sum(times) / (len(times) * max(times))


def exposed_period(rollout: float, train: float, exposed: float) -> float:
    """`max(G, T) + s`: the overlapped period with `exposed` seconds (a pause for new weights, admission) in which
    neither stage goes on."""
    return overlapped_period(rollout, train) + exposed


@dataclass(frozen=True)
class Split:
    """Devices for rollout and for training, and the period if each stage's time goes as one over its devices."""

    rollout: int
    train: int
    period: float


def best_split(rollout_work: float, train_work: float, devices: int) -> Split:
    """The split of `devices` with the shortest overlapped period [12.3.1], from device-seconds a batch that were
    measured. Linear scaling: a small batch or a long tail scales worse, so measure again at the split.

    Raises:
        ValueError: fewer than two devices.
    """
    if devices < 2:
        raise ValueError("two pools need two devices")
    splits = [
        Split(number, devices - number, overlapped_period(rollout_work / number, train_work / (devices - number)))
        for number in range(1, devices)
    ]
    return min(splits, key=lambda split: split.period)


@dataclass(frozen=True)
class Stage:
    """A stage of one batch: its seconds, and the stages that have to end before it begins."""

    seconds: float
    after: tuple[str, ...] = ()


def critical_path(stages: Mapping[str, Stage]) -> tuple[list[str], float]:
    """The chain of stages that the end of a batch waits for, and its seconds [12.3.5]. The sum of all stages is the
    work; a stage off this chain can be made faster without any effect.

    Raises:
        ValueError: a stage waits for one that there is not, or for itself.
    """
    ends: dict[str, tuple[float, str | None]] = {}

    def end_of(name: str, above: tuple[str, ...]) -> float:
        if name in above:
            raise ValueError(f"stage {name} waits for itself")
        if name not in stages:
            raise ValueError(f"stage {above[-1]} waits for {name}, which there is not")
        if name not in ends:
            before = [(end_of(other, (*above, name)), other) for other in stages[name].after]
            begin, last = max(before, default=(0.0, None), key=lambda pair: pair[0])
            ends[name] = begin + stages[name].seconds, last
        return ends[name][0]

    last = max(stages, key=lambda name: end_of(name, ()))
    chain: list[str] = []
    step: str | None = last
    while step is not None:
        chain.append(step)
        step = ends[step][1]
    return chain[::-1], ends[last][0]
