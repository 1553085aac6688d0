"""Architectural axes: what an adapter declares, beside what its ledgers show (MEASURES.md, "Comparing")."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.report.model import Axis
from harness.report.observed import Observation

AXES = (
    "placement",
    "synchrony",
    "lag_bound",
    "training_backend",
    "rollout_engine",
    "weight_sync",
    "multi_turn",
    "queue",
    "recovery",
    "telemetry",
    "logprob_regime",
    "adapters_lora",
)
WORDS = {"placement": ("colocated", "disaggregated"), "synchrony": ("synchronous", "asynchronous")}
"""Axes whose values come from a closed set: only there can a script see that declared and measured contradict."""


@dataclass(frozen=True)
class Declared:
    """What `adapter.yaml` says of an axis."""

    value: str | None
    source: str | None
    version: str | None
    date: str | None


def _declared(facts: Mapping[str, Any], axis: str) -> Declared:
    said = (facts.get("axes") or {}).get(axis)
    if not said:
        return Declared(None, None, None, None)
    date = said.get("date")
    version = said.get("version") or facts.get("version")
    return Declared(said["declared"], said.get("source"), str(version), str(date) if date else None)


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


def contradicts(axis: str, declared: str | None, measured: str | None) -> bool:
    """Whether the measured value of a closed set is not among what is declared."""
    if declared is None or measured is None or axis not in WORDS:
        return False
    said, seen = (_words(text) & set(WORDS[axis]) for text in (declared, measured))
    return bool(said) and not seen <= said


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
    declared = _declared(facts, axis)
    values = list(dict.fromkeys(_said(seen)))
    reasons = list(dict.fromkeys(o.reason for o in seen if o.reason))
    return Axis(
        adapter=name,
        axis=axis,
        declared=declared.value,
        source=declared.source,
        version=declared.version,
        date=declared.date,
        measured="; ".join(values) or None,
        evidence="; ".join(dict.fromkeys(o.evidence for o in seen)),
        reason=None if values else "; ".join(reasons) or "no cell of this adapter left a ledger",
        differs=any(contradicts(axis, declared.value, o.value) for o in seen),
        stale=stale(facts, declared),
    )


def _said(seen: Sequence[Observation]) -> Iterator[str]:
    """Measured values; with their layout where layouts do not agree."""
    values = {o.value for o in seen if o.value is not None}
    for o in seen:
        if o.value is not None:
            yield o.value if len(values) == 1 else f"{o.layout.replace('_', ' ')}: {o.value}"
