"""What checkpoints cost and how often to write one [12.5.1; Young, CACM 1974]."""

import math


def checkpoint_overhead(interval: float, write: float, between_failures: float) -> float:
    """`H(I) = C/I + I/(2M)`: the fraction of time that writing and lost work take."""
    return write / interval + interval / (2 * between_failures)


def best_interval(write: float, between_failures: float) -> float:
    """`I* = sqrt(2 C M)`, in the unit of C and M."""
    return math.sqrt(2 * write * between_failures)
