"""Reports of several dates, read back with everything that decides whether their figures may be joined."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from harness.errors import UserError
from harness.report import format as fmt
from harness.report.corrections import Correction, corrections_of
from harness.report.grades import evidence_of_report
from harness.report.model import ReportModel
from harness.report.seals import DATED

PATTERNS = (f"{DATED}/*/*/report.json", "*/report.json", "report.json")
"""Where reports lie in a folder of results, in a folder of runs, and in one run."""
SHORT = 12


@dataclass(frozen=True)
class DatedReport:
    """A report with its manifest.

    Attributes:
        name: the run's id.
        created: when it began, ISO 8601 in UTC.
        reason: why none of its figures may be joined with others, or None.
    """

    name: str
    created: str
    model: ReportModel
    manifest: Mapping[str, Any]
    corrections: Sequence[Correction]
    reason: str | None

    def config(self, *place: str) -> Mapping[str, Any]:
        """The resolved configuration of the cells of a column (adapter, layout, track); empty where there is none."""
        found = (self.manifest.get("configs") or {}).get(".".join(place)) or {}
        resolved: Mapping[str, Any] = found.get("resolved") or {}
        return resolved

    @property
    def bundle(self) -> dict[str, str]:
        """The hash of prompts, tokenizer and starting checkpoint, by `bundle`; empty where there is no bundle."""
        digest = (self.manifest.get("bundle") or {}).get("hash")
        return {"bundle": digest[:SHORT]} if digest else {}

    def machine(self, *place: str) -> str:
        """The machine of a column (adapter, layout, track): its id; where it has none, what kind it is; of cells on
        several, all of them."""
        return " and ".join(self._machines(place)) or machine_name(self.manifest.get("machine") or {})

    def unjoinable(self, *place: str) -> str | None:
        """Why the figures of a column (adapter, layout, track) are joined with no others, or None."""
        if not self.config(*place):
            return "figures whose settings are not told"
        if len(self._machines(place)) > 1:
            return "figures whose repeats ran on several machines"
        if not self._machines(place) and not self.manifest.get("machine"):
            return "figures whose machine is not told"
        return None

    def _machines(self, place: tuple[str, ...]) -> list[str]:
        return sorted({str(cell["machine"]) for cell in self._cells(place) if cell.get("machine")})

    def _cells(self, place: tuple[str, ...]) -> list[dict[str, Any]]:
        return [cell for cell in self.model.cells if (cell["adapter"], cell["layout"], cell["track"]) == place]

    def label(self, adapter: str) -> str:
        """What a system is called along a line: its label; of a git revision that `rlaxes track` ran, the adapter and
        the user's word for it, which stays where a branch moves on (`trl@git:main`)."""
        tracked = self._tracked(adapter)
        moves = tracked.get("kind") in {"git", "checkout"}
        return f"{adapter.partition('@')[0]}@{tracked['word']}" if moves else adapter

    def _tracked(self, adapter: str) -> Mapping[str, Any]:
        facts = (self.manifest.get("adapters") or {}).get(adapter) or {}
        return facts.get("tracked") or {}

    def context(self, *place: str) -> dict[str, str]:
        """What may change along a line, by its name in words, for a column (adapter, layout, track)."""
        adapter, cells = place[0], self._cells(place)
        facts = (self.manifest.get("adapters") or {}).get(adapter) or {}
        rlaxes, lock = self.manifest.get("rlaxes") or {}, (self.manifest.get("locks") or {}).get(adapter)
        machines = self.manifest.get("machines") or {}
        machine = (machines.get(self.machine(*place)) or {}).get("machine") or self.manifest.get("machine") or {}
        dirty = " with uncommitted changes" if rlaxes.get("dirty") else ""
        said = {
            facts.get("name") or adapter: facts.get("version"),
            "revision": self._tracked(adapter).get("commit"),
            "lock": lock and lock[:SHORT],
            "rlaxes": f"{rlaxes.get('version')} {(rlaxes.get('commit') or 'no commit')[:SHORT]}{dirty}",
            "Python": machine.get("python"),
            "kernel": machine.get("release"),
            "load before its cells": _middle([(cell.get("load_before") or [None])[0] for cell in cells]),
            "cores that others used": _middle([cell.get("foreign_cores") for cell in cells]),
        }
        return {key: str(value) for key, value in said.items() if value is not None}


def _middle(values: Sequence[float | None]) -> str | None:
    """The median, to a tenth."""
    known = [value for value in values if value is not None]
    return f"{median(known):.1f}" if known else None


def machine_name(machine: Mapping[str, Any]) -> str:
    """The id of a machine; of one that was described before there were ids, its kind, which others may share."""
    if machine.get("id"):
        return str(machine["id"])
    if not machine:
        return "unknown machine"
    gpus = [gpu["name"] for gpu in machine.get("gpus") or []]
    memory = fmt.quantity(machine["memory_bytes"], "bytes")
    return ", ".join([machine["cpu_model"], f"{machine['cores']} cores", memory, *gpus, "without an id"])


def read_reports(folders: Sequence[Path]) -> list[DatedReport]:
    """Every report in folders of results, folders of runs, or single runs, in the order of their beginning.

    Raises:
        UserError: a folder is not there, or holds no report.
    """
    reports: dict[str, DatedReport] = {}
    for folder in folders:
        found = sorted({path for pattern in PATTERNS for path in folder.glob(pattern)})
        if not found:
            raise UserError(f"{folder} holds no report: name a folder of results, of runs, or one run")
        for path in found:
            report = read_report(path)
            reports.setdefault(report.name, report)
    return sorted(reports.values(), key=lambda report: report.created)


def read_report(path: Path) -> DatedReport:
    """A `report.json` with the manifest and the corrections beside it.

    Raises:
        UserError: one of them is not there, or is not what this rlaxes reads.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        manifest = json.loads((path.parent / "manifest.json").read_text(encoding="utf-8"))
        model = ReportModel.from_dict(content)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UserError) as error:
        raise UserError(f"{path} is no report that this rlaxes reads: {error!r}") from error
    evidence = evidence_of_report(content)
    reason = None if evidence == "measured here" else f"{evidence}, which is no figure to join with one measured here"
    return DatedReport(model.run_id, model.created, model, manifest, corrections_of(path.parent), reason)
