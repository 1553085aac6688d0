"""What an `adapter.yaml` declares of a requirement, with its source, version and date."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.choose.asked import Requirement
from harness.choose.evidence import DECLARED, Framework
from harness.choose.topics import TOPICS
from harness.report.axes import declared_of

BOUNDS = ("admission", "drops", "fixed_lead", "waits")
"""Values of the axis lag_bound that keep the age of what is trained within a bound; `queue_size` bounds its amount."""


@dataclass(frozen=True)
class Declaration:
    """Whether what is declared meets a requirement, in words, and where it stands."""

    meets: bool
    says: str
    source: str
    version: str
    date: str
    older_than_pin: str | None
    grade: str = DECLARED


def declared_verdict(framework: Framework, one: Requirement) -> Declaration | None:
    """What is declared of a requirement; None where nothing is, or where nobody has looked."""
    axis = TOPICS[one.topic].axis
    said = (framework.spec.get("axes") or {}).get(axis)
    if not said:
        return None
    meets, why = _lag(framework, one.lag) if one.lag is not None else _values(one, said)
    if meets is None:
        return None
    declared = declared_of(framework.spec, axis)
    pinned, date = str(framework.spec.get("pinned") or ""), str(declared.date)
    older = f"it was read on {date}, the pin is of {pinned}" if date < pinned else None
    sentence = f"{why}: {declared.value}"
    return Declaration(meets, sentence, str(declared.source), str(declared.version), date, older)


def _values(one: Requirement, said: Mapping[str, Any]) -> tuple[bool | None, str]:
    declared = set(said["values"])
    there = sorted(one.values & declared)
    if there:
        return True, f"lists {', '.join(there)}"
    if one.values & set(said.get("unread") or ()):
        return None, ""
    return False, f"lists {', '.join(said['values'])}, not what is asked"


def _lag(framework: Framework, allowed: int | None) -> tuple[bool | None, str]:
    """No lag at all is a synchronous layout's. A bound has the framework's own unit, which its sentence says."""
    axes = framework.spec["axes"]
    if allowed == 0:
        synchronous = "synchronous" in (axes.get("synchrony") or {}).get("values", ())
        return synchronous, "lists a synchronous layout" if synchronous else "lists no synchronous layout"
    values = set(axes["lag_bound"]["values"])
    if there := sorted(values & set(BOUNDS)):
        return True, f"lists a bound on age, in a unit of its own ({', '.join(there)})"
    if "unbounded" in values:
        return False, "lists no bound"
    if values == {"own_updates"}:
        return True, "lists synchronous layouts alone, where only a batch's own updates are ahead of it"
    return None, ""
