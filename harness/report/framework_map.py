"""The framework map: what each adapter declares on each axis, what held before, and what a published run measured.

Frameworks stand in the order of their names; nothing is ranked.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.contract.axes import AXES
from harness.errors import UserError
from harness.report.axes import declared_of, stale
from harness.report.corrections import corrections_of, withdrawn_whole
from harness.report.grades import evidence_of_report


@dataclass(frozen=True)
class Former:
    """What was declared before: seen so at `version`, otherwise at `until`."""

    declared: str
    version: str
    until: str
    source: str
    date: str


@dataclass(frozen=True)
class Seen:
    """What a published run measured: `version` of the adapter, `run` by its id, `evidence` in its ledger."""

    value: str
    evidence: str
    version: str | None
    run: str
    differs: bool


@dataclass(frozen=True)
class MapEntry:
    """One axis of one adapter.

    Attributes:
        values: of the axis's vocabulary.
        unread: those of it of which nobody has looked; any other that is not in `values` was looked for and not found.
        source, version, date: the file or document, at which version, and when it was read.
        stale: why it may no longer hold, or None.
        changed: what held before, oldest first.
        measured: the newest published measurement, or None.
    """

    adapter: str
    axis: str
    declared: str
    values: tuple[str, ...]
    unread: tuple[str, ...]
    source: str
    version: str
    date: str
    stale: str | None
    changed: tuple[Former, ...]
    measured: Seen | None


def framework_map(
    adapters: Mapping[str, Mapping[str, Any]], seen: Mapping[tuple[str, str], Seen] | None = None
) -> list[MapEntry]:
    """Every axis that the adapters declare, in the order of axes and names.

    Args:
        adapters: the content of each `adapter.yaml`, by name.
        seen: what published runs measured, by adapter and axis.
    """
    declared = ((axis, name) for axis in AXES for name in sorted(adapters) if axis in adapters[name]["axes"])
    return [_entry(name, adapters[name], axis, (seen or {}).get((name, axis))) for axis, name in declared]


def _entry(name: str, spec: Mapping[str, Any], axis: str, measured: Seen | None) -> MapEntry:
    said, declared = spec["axes"][axis], declared_of(spec, axis)
    was = tuple(Former(**{key: str(value) for key, value in former.items()}) for former in said.get("was") or ())
    return MapEntry(
        adapter=name,
        axis=axis,
        declared=said["declared"],
        values=declared.values,
        unread=tuple(said.get("unread") or ()),
        source=said["source"],
        version=str(declared.version),
        date=str(declared.date),
        stale=stale(spec, declared),
        changed=was,
        measured=measured,
    )


def published(results: Path) -> dict[tuple[str, str], Seen]:
    """What the newest published run with a value measured, by adapter and axis; empty where nothing is published. A run
    that was withdrawn whole, or recorded elsewhere, measured nothing here.

    Raises:
        UserError: a published `report.json` cannot be read.
    """
    paths = (path for path in results.glob("*/*/*/report.json") if not withdrawn_whole(corrections_of(path.parent)))
    return newest_seen([report for report in map(_report, paths) if evidence_of_report(report) == "measured here"])


def newest_seen(reports: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], Seen]:
    """The same of the contents of published `report.json` files, in any order."""
    found: dict[tuple[str, str], Seen] = {}
    for report in sorted(reports, key=lambda report: str(report["created"])):
        found |= dict(_measured(report))
    return found


def _report(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        kept = {key: content[key] for key in ("created", "run_id", "adapters", "axes")}
        return kept | {"ingested": content.get("ingested")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is no report that rlaxes published: {error!r}") from error


def _measured(report: Mapping[str, Any]) -> Sequence[tuple[tuple[str, str], Seen]]:
    """Of adapters by their own name: a configuration that is called otherwise (`reference_vllm`) is left out."""
    versions = {name: facts.get("version") for name, facts in report["adapters"].items()}
    return [
        ((said["adapter"], said["axis"]), _seen(said, versions.get(said["adapter"]), report["run_id"]))
        for said in report["axes"]
        if said["measured"] is not None
    ]


def _seen(said: Mapping[str, Any], version: str | None, run: str) -> Seen:
    return Seen(said["measured"], said["evidence"], version, run, said["differs"])
