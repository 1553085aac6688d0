"""Stability of the queue between rollout and trainer, in one unit of work [12.3.4]."""

import math


def growth(arrival: float, service: float) -> float:
    """`lambda - mu` where it is above 0, else 0: how much the depth grows a second in the long run, without a limit."""
    return max(arrival - service, 0.0)


def utilisation(arrival: float, service: float) -> float:
    """`rho = lambda / mu`: above 1 the queue grows without bound; well below it the trainer starves."""
    return arrival / service if service else math.inf


def seconds_until(depth: float, limit: float, arrival: float, service: float) -> float:
    """When a queue that is `depth` deep reaches `limit`; infinite where it never does."""
    if depth >= limit:
        return 0.0
    rate = growth(arrival, service)
    return (limit - depth) / rate if rate else math.inf


def starving_share(arrival: float, service: float) -> float:
    """`1 - lambda / mu`: the share of its time for which a trainer that nothing else holds up waits for data."""
    return max(1.0 - utilisation(arrival, service), 0.0)


def lag_of_depth(depth: float, batch: float, updates: int) -> float:
    """Updates that a record at the end of a queue will be behind: the batches before it, times the updates of each.
    `depth` and `batch` in one unit."""
    return depth / batch * updates
