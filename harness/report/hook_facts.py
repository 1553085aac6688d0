"""Which hook points of an adapter were there in which version of its framework, as dated runs show it.

Every cell checks all of its hook points before it begins, so that one that ended well held them all; one that did not
names those that are gone.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.report.dated import DatedReport

DRIFT = re.compile(r"hook drift: [^;]+")


@dataclass(frozen=True)
class HookFact:
    """What one run saw: `gone` is empty where all hook points held."""

    adapter: str
    version: str
    date: str
    run: str
    gone: tuple[str, ...]


def hook_facts(reports: Sequence[DatedReport]) -> list[HookFact]:
    """The newest fact about each version of each adapter, by name and date; nothing of one that no cell tells of."""
    newest: dict[tuple[str, str], HookFact] = {}
    for report in sorted(reports, key=lambda report: report.created):
        if not report.reason:
            newest |= {(fact.adapter, fact.version): fact for fact in _of_run(report)}
    return sorted(newest.values(), key=lambda fact: (fact.adapter, fact.date))


def _of_run(report: DatedReport) -> Iterator[HookFact]:
    for label, said in sorted((report.manifest.get("adapters") or {}).items()):
        cells = [cell for cell in report.manifest["cells"] if (cell.get("system") or cell["adapter"]) == label]
        gone = sorted({message for cell in cells for message in _gone(cell)})
        if said.get("version") and (gone or any(cell["status"] == "ok" for cell in cells)):
            yield HookFact(said.get("name") or label, said["version"], report.created[:10], report.name, tuple(gone))


def _gone(cell: Mapping[str, Any]) -> Iterable[str]:
    return DRIFT.findall(cell.get("reason") or "")
