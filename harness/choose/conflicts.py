"""Requirements that no framework can meet together: refused before any is asked of one."""

from collections.abc import Callable

from harness.choose.asked import Requirements
from harness.choose.topics import ASYNCHRONOUS, LAG


def conflict_in(asked: Requirements) -> str | None:
    """The first conflict between requirements that must be met, in one line; None where there is none."""
    return next((said for rule in RULES if (said := rule(asked))), None)


def _only_synchronous(asked: Requirements) -> bool:
    musts = asked.of("synchrony", "must")
    return bool(musts) and all(one.values == {"synchronous"} for one in musts)


def _only_asynchronous(asked: Requirements) -> bool:
    musts = asked.of("synchrony", "must")
    return bool(musts) and all(one.values <= {*ASYNCHRONOUS, "partial_rollout"} for one in musts)


def _lag(asked: Requirements) -> str | None:
    musts = asked.of(LAG, "must")
    if len(musts) > 1:
        return f"{LAG} must be {' and '.join(str(one.lag) for one in musts)}: keep the smallest"
    if musts and musts[0].lag and _only_synchronous(asked):
        return (
            f"synchronous and allowed lag {musts[0].lag} contradict each other: where each batch waits for the update, "
            f"nothing lags; drop `{LAG}`, or ask for `synchrony: asynchronous`"
        )
    if musts and musts[0].lag == 0 and _only_asynchronous(asked):
        return (
            "asynchronous and allowed lag 0 contradict each other: what is generated beside an update is one behind it"
        )
    return None


def _queue(asked: Requirements) -> str | None:
    queued = [one for one in asked.of("queue", "must") if "none" not in one.words]
    if queued and _only_synchronous(asked):
        return (
            f"synchronous and queue {queued[0].asked} contradict each other: a batch is handed over, and nothing waits"
        )
    if queued and any(one.words == ("none",) for one in asked.of("queue", "must")):
        return f"queue none and queue {queued[0].asked} contradict each other"
    return None


def _saved_queue(asked: Requirements) -> str | None:
    kept = [one for one in asked.of("recovery", "must") if one.words == ("queue",)]
    if kept and any(one.words == ("none",) for one in asked.of("queue", "must")):
        return "queue none and recovery queue contradict each other: there is nothing to save"
    return None


def _nodes(asked: Requirements) -> str | None:
    nodes = asked.of("nodes", "must")
    if any(one.words == ("many",) for one in nodes) and any(one.words == ("one",) for one in nodes):
        return "nodes one and nodes many contradict each other: say `one or many` where either will do"
    return None


RULES: tuple[Callable[[Requirements], str | None], ...] = (_lag, _queue, _saved_queue, _nodes)
