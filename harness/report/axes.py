"""Architectural axes: what an adapter declares, beside what its ledgers show (MEASURES.md, "Comparing")."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.contract.axes import AXES
from harness.report.model import Axis
from harness.report.observed import LOOKS, Observation

WORDS = {"placement": ("colocated", "disaggregated"), "synchrony": ("synchronous", "asynchronous")}
"""Axes whose measured values are a closed set: only there can a script see that declared and measured contradict."""
ASYNCHRONOUS = ("one_step_off", "fully_asynchronous")
"""Declared values that a ledger shows as `asynchronous`."""


@dataclass(frozen=True)
class Declared:
    """What `adapter.yaml` says of an axis; `values` are of its vocabulary (none in manifests of before 2026-11-30)."""

    value: str | None
    values: tuple[str, ...]
    source: str | None
    version: str | None
    date: str | None


def declared_of(facts: Mapping[str, Any], axis: str) -> Declared:
    """What an adapter, or a manifest's facts of it, declares on an axis."""
    said = (facts.get("axes") or {}).get(axis)
    if not said:
        return Declared(None, (), None, None, None)
    date = said.get("date")
    version = said.get("version") or facts.get("version")
    values = tuple(said.get("values") or ())
    return Declared(said["declared"], values, said.get("source"), str(version), str(date) if date else None)


def stale(facts: Mapping[str, Any], declared: Declared) -> str | None:
    """Why a declared value may no longer hold: it speaks of another version, or is older than the pin."""
    if declared.value is None:
        return None
    if declared.version != str(facts.get("version")):
        return f"it speaks of {declared.version}, the pin is {facts.get('version')}"
    pinned = facts.get("pinned")
    if pinned and declared.date and declared.date < str(pinned):
        return f"it was read on {declared.date}, the pin is of {pinned}"
    return None


def contradicts(axis: str, declared: Declared, measured: str | None) -> bool:
    """Whether the measured value of a closed set is not among what is declared."""
    if declared.value is None or measured is None or axis not in WORDS:
        return False
    values = {"asynchronous" if value in ASYNCHRONOUS else value for value in declared.values}
    said = (values or _words(declared.value)) & set(WORDS[axis])
    return bool(said) and not _words(measured) & set(WORDS[axis]) <= said


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower()))


def axes_of(adapters: Mapping[str, Mapping[str, Any]], observed: Mapping[str, Sequence[Observation]]) -> list[Axis]:
    """Every axis of every adapter, in the order of axes and names.

    Args:
        adapters: the manifest's facts by label.
        observed: what the ledgers show, by label; of several layouts, each is said.
    """
    return [
        _axis(name, axis, adapters[name], [o for o in observed.get(name, ()) if o.axis == axis])
        for axis in AXES
        for name in sorted(adapters)
    ]


def _axis(name: str, axis: str, facts: Mapping[str, Any], seen: Sequence[Observation]) -> Axis:
    declared = declared_of(facts, axis)
    values = list(dict.fromkeys(_said(seen)))
    reasons = list(dict.fromkeys(o.reason for o in seen if o.reason))
    return Axis(
        adapter=name,
        axis=axis,
        declared=declared.value,
        values=list(declared.values),
        source=declared.source,
        version=declared.version,
        date=declared.date,
        measured="; ".join(values) or None,
        evidence="; ".join(dict.fromkeys(o.evidence for o in seen)),
        reason=None if values else "; ".join(reasons) or _unseen(axis),
        differs=any(contradicts(axis, declared, o.value) for o in seen),
        stale=stale(facts, declared),
    )


def _unseen(axis: str) -> str:
    return "no ledger of this adapter shows it" if axis in LOOKS else "no ledger shows this axis"


def _said(seen: Sequence[Observation]) -> Iterator[str]:
    """Measured values; with their layout where layouts do not agree."""
    values = {o.value for o in seen if o.value is not None}
    for o in seen:
        if o.value is not None:
            yield o.value if len(values) == 1 else f"{o.layout.replace('_', ' ')}: {o.value}"
