"""What checkpoints cost and how often to write one [12.5.1; Young, CACM 1974]."""

import math


def checkpoint_overhead(interval: float, write: float, between_failures: float) -> float:
    """`H(I) = C/I + I/(2M)`: the fraction of time that writing and lost work take."""
    return write / interval + interval / (2 * between_failures)


def best_interval(write: float, between_failures: float) -> float:
    """`I* = sqrt(2 C M)`, in the unit of C and M."""
    return math.sqrt(2 * write * between_failures)


SMALL = 0.05
"""Up to here each of the two terms of H may count as small: the model leaves out that one eats into the other."""


def beyond_small(interval: float, write: float, between_failures: float) -> list[str]:
    """Which terms of `H(I)` are not small, in words: there the model understates the waste and its best interval is
    off."""
    terms = {"C/I": write / interval, "I/(2M)": interval / (2 * between_failures)}
    return [f"{name} is {value:.1%}, above {SMALL:.0%}" for name, value in terms.items() if value > SMALL]


def job_between_failures(device_between_failures: float, devices: int) -> float:
    """Mean time between failures of a job that any of its devices ends, if they fail independently: `M_device / n`."""
    return device_between_failures / devices
