"""What the formulas say of whole systems: the same work on other numbers of GPUs, and gains that were claimed."""

from collections.abc import Mapping
from typing import Any

from harness.theory.pipeline import overlap_speedup
from harness.validate.outcome import Check, Outcome, Refusal, attempt
from harness.validate.table import Row, published

ON_POLICY = "on-policy"
MOST = 2.0
"""Times as fast by overlapping two stages, at most."""


def device_seconds() -> list[Outcome]:
    """Each asynchronous row of NeMo RL's page, and each larger on-policy one, from the smallest on-policy row of the
    same model, version and hardware: as many GPU-seconds a step, so no gain from overlap and no loss from scaling."""
    first: dict[str, Row] = {}
    out: list[Outcome] = []
    for row in published().nemo:
        base = first.setdefault(row.values["system"], row)
        if base is row:
            if row.values["policy"] != ON_POLICY:
                out.append(Refusal(row.name, row.wrong or "no on-policy row stands beside it"))
            elif row.wrong:
                out.append(Refusal(row.name, row.wrong))
            continue
        out.append(attempt(row.name, lambda base=base, row=row: _same_work(base, row)))  # type: ignore[misc]
    return out


def _same_work(base: Row, row: Row) -> Check:
    step, gpus, other = base.need("step"), base.need("gpus"), row.need("gpus")
    return Check(row.name, f"{step:g} x {gpus:g}/{other:g}", step * gpus / other, row.need("step"))


def equal_devices() -> list[tuple[str, float]]:
    """Asynchronous over on-policy step, of the rows of NeMo RL's page that had as many GPUs and contradict nothing."""
    rows = [row for row in published().nemo if not row.wrong]
    on_policy = {(row.values["system"], row.values["gpus"]): row for row in rows if row.values["policy"] == ON_POLICY}
    out = []
    for row in rows:
        base = on_policy.get((row.values["system"], row.values["gpus"]))
        if base and row.values["policy"] != ON_POLICY:
            out.append((row.name, row.need("step") / base.need("step")))
    return out


def most_from_overlap(gain: Mapping[str, Any]) -> float:
    """The largest gain that overlap can bring: 2, or `1 / max(g, 1 - g)` where the rollout's share g of a sequential
    step is printed."""
    share = gain.get("share")
    return MOST if share is None else overlap_speedup(share, 1 - share)


def explained(gain: Mapping[str, Any]) -> float:
    """That times the gain that is printed for the tail."""
    return most_from_overlap(gain) * float(gain.get("tail", 1.0))
