"""Times of a two-stage pipeline, and what one long completion costs [12.3.1, 12.3.2]."""

from collections.abc import Sequence


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
