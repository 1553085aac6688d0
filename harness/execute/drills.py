"""Which faults an adapter can have: what `conf/fault/` may say, and what the adapter says of itself under `drills`."""

from collections.abc import Mapping
from typing import Any

from harness.errors import UserError
from harness.execute.adapter import Adapter
from harness.probe.faults import ACTIONS, POINTS

DRILLS = "drills"
"""The entry of `adapter.yaml`: `points` {point: who passes it and dies there}, `restores` [what a restart can put
back], and `note`, what else a reader of its drills should know."""


def check_fault(fault: Mapping[str, Any]) -> None:
    """Raise UserError where a fault names a point or an action that no adapter has."""
    for one in fault.get("faults", ()):
        if one["point"] not in POINTS or one["action"] not in ACTIONS:
            raise UserError(f"fault {one}: points are {', '.join(POINTS)}; actions are {', '.join(ACTIONS)}")


def refusal(adapter: Adapter, fault: Mapping[str, Any], options: Mapping[str, Any]) -> str | None:
    """Why an adapter cannot have a fault, or None.

    Args:
        options: of the adapter, as resolved.
    """
    if not fault.get("faults") and not fault.get("kills"):
        return None
    said = adapter.spec.get(DRILLS)
    if said is None:
        return f"{adapter.name} declares no drills: its adapter.yaml does not say what of a run can be broken"
    for one in fault["faults"]:
        if one["point"] not in said["points"]:
            return f"{adapter.name} passes no point {one['point']}; it passes {', '.join(said['points'])}"
    wanted, known = options["checkpoint"].get("restore", "full"), said["restores"]
    if wanted not in known:
        return f"{adapter.name} cannot restore {wanted} alone; it restores {', '.join(known)}"
    return None
