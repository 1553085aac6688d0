"""A framework's own checkpoints, and what is kept beside each: the mark in the ledger, a digest of each item of step
12.5.1 as it was held then, and the adapter's counters. A restart compares what is held after the framework has loaded.

The framework resumes by its own means; nothing of it is restored from here.
"""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.contract import SCHEMA_VERSION, TABLES
from harness.probe.probe import Probe

FOLDER = "kept"
GIVEN = "given anew by the cell's settings: the framework's checkpoint is not asked"
_DECODING = ("temperature", "top_p", "top_k", "min_p", "max_tokens")
_NORMALIZATION = ("advantage_std", "std_ddof", "advantage_eps")


@dataclass(frozen=True)
class Kept:
    """What is known of a whole checkpoint.

    Attributes:
        path: of the framework's folder, relative to the cell's directory.
        step: optimizer steps taken; `policy_version`: of the weights.
        mark: how much of the history was written down (`Probe.mark`).
        items: digest of each item; an item that the framework keeps nothing of is in it all the same.
        state: the adapter's own counters.
    """

    path: str
    step: int
    policy_version: int
    mark: dict[str, Any]
    items: dict[str, str]
    state: dict[str, Any]


def digest_of(content: Any) -> str:
    """SHA-256 of content as JSON with sorted keys; floats count with all their digits."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def given_items(cell: Mapping[str, Any], components: Mapping[str, str]) -> dict[str, str]:
    """Digests of the items that follow from the cell's settings, whatever is restored; `components` are the versions of
    tokenizer, template and verifier that this process holds."""
    task = cell["task"]
    layout = {key: cell["layout"][key] for key in ("name", "lag_bound")} | {"device": cell["profile"]["device"]}
    content = {
        "normalization": {name: task[name] for name in _NORMALIZATION},
        "component_versions": dict(components),
        "rollout_schema": {"version": SCHEMA_VERSION, "columns": TABLES["rollouts"].names},
        "decoding": {name: task[name] for name in _DECODING} | {"seed": cell["seed"]},
        "layout": layout,
    }
    return {name: digest_of(value) for name, value in content.items()}


def keep(
    probe: Probe,
    path: Path,
    t_start: int,
    step: int,
    policy_version: int,
    items: Mapping[str, str],
    state: Mapping[str, Any],
) -> None:
    """Write down that the framework has written a checkpoint whole: to be called by the process that writes the
    history, before it adds anything to it.

    Args:
        path: the framework's folder, below the cell's directory.
        t_start: when the framework began to write it (perf_counter_ns).
    """
    directory = Path(probe.cell["directory"])
    name = str(path.relative_to(directory))
    kept = Kept(name, step, policy_version, probe.mark(), dict(items), dict(state))
    folder = directory / FOLDER
    folder.mkdir(exist_ok=True)
    partial = folder / f"{step}.partial"
    partial.write_text(json.dumps(asdict(kept)), encoding="utf-8")
    partial.replace(folder / f"{step}.json")
    row = {"step": step, "policy_version": policy_version, "path": name, "ok": True, "items": json.dumps(kept.items)}
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    probe.checkpoint(t_start=t_start, t_end=time.perf_counter_ns(), bytes=size, **row)
    probe.flush()


def newest(cell: Mapping[str, Any]) -> Kept | None:
    """The newest checkpoint of an earlier attempt at this cell that was written down and is still there. In a first
    attempt there is none, whatever lies in the folder."""
    directory = Path(cell["directory"])
    if cell["attempt"] == 0:
        return None
    found = [Kept(**json.loads(path.read_text(encoding="utf-8"))) for path in (directory / FOLDER).glob("*.json")]
    there = [kept for kept in found if (directory / kept.path).exists()]
    return max(there, key=lambda kept: kept.step, default=None)


def say_resumed(
    probe: Probe,
    kept: Kept | None,
    step: int,
    policy_version: int,
    held: Mapping[str, str],
    evidence: Mapping[str, str],
) -> None:
    """Say where this attempt goes on from, before it adds to the history; see `Probe.resumed`. An item is restored
    where the digest of what is held now is that of what was held then, lost where nothing is held of it, and else
    restarted.

    Args:
        kept: None where the run begins again.
        step, policy_version: that the framework goes on from.
        held: digest of each item as it is held now.
        evidence: how each was looked at, by item; `GIVEN` for those of `given_items`.
    """
    if kept is None:
        probe.resumed(None, None, step, policy_version, {})
        return
    restored = {name: _item(saved, held.get(name, ""), evidence.get(name, GIVEN)) for name, saved in kept.items.items()}
    probe.resumed(kept.mark, kept.path, step, policy_version, restored)


def _item(saved: str, found: str, evidence: str) -> dict[str, str]:
    state = "restored" if saved == found else "restarted" if found else "lost"
    return {"state": state, "saved": saved, "found": found, "evidence": evidence}
