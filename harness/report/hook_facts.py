"""Which hook points of an adapter were there in which version of its framework, as dated runs show it.

Every cell checks all of its hook points before it begins, so that one that ended well held them all; one that did not
names those that are gone. `rlaxes track` runs no cell where hook points of a version are gone: what it said (`--json`),
published as `results/<date>/<folder>/<name>.json`, is the record of that.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.report.dated import DatedReport
from harness.report.seals import DATED

DRIFT = re.compile(r"hook drift: [^;]+")


@dataclass(frozen=True)
class HookFact:
    """What one run saw: `gone` is empty where all hook points held."""

    adapter: str
    version: str
    date: str
    run: str
    gone: tuple[str, ...]


def hook_facts(reports: Sequence[DatedReport], folders: Sequence[Path] = ()) -> list[HookFact]:
    """The newest fact about each version of each adapter, by name and date; nothing of one that nothing tells of.

    Args:
        folders: folders of results, in which answers of `rlaxes track` may lie.
    """
    facts = [fact for report in reports if not report.reason for fact in _of_run(report)]
    facts += [fact for folder in folders for path in folder.glob(f"{DATED}/*/*.json") for fact in _of_answer(path)]
    newest = {(fact.adapter, fact.version): fact for fact in sorted(facts, key=lambda fact: (fact.date, fact.run))}
    return sorted(newest.values(), key=lambda fact: (fact.adapter, fact.date, fact.version))


def _of_run(report: DatedReport) -> Iterator[HookFact]:
    for label, said in sorted((report.manifest.get("adapters") or {}).items()):
        cells = [cell for cell in report.manifest["cells"] if (cell.get("system") or cell["adapter"]) == label]
        gone = sorted({message for cell in cells for message in _gone(cell)})
        if said.get("version") and (gone or any(cell["status"] == "ok" for cell in cells)):
            yield HookFact(said.get("name") or label, said["version"], report.created[:10], report.name, tuple(gone))


def _of_answer(path: Path) -> Iterator[HookFact]:
    """Both versions were asked, and the one of which it says nothing has all of them."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        drift = (content.get("hook_drift") if isinstance(content, dict) else None) or {}
        for said in (content["pin"], content["candidate"]) if drift else ():
            gone = tuple(drift.get(said["label"], ()))
            yield HookFact(said["label"].partition("@")[0], said["release"], path.parts[-3], path.name, gone)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is neither data nor what `rlaxes track --json` said: {error!r}") from error


def _gone(cell: Mapping[str, Any]) -> Iterable[str]:
    return DRIFT.findall(cell.get("reason") or "")
