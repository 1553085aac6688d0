"""Cells that ran out of memory, so that none that needs at least as much is started to die the same way."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from harness.execute.plan import PlannedCell
from harness.execute.run_folder import MANIFEST
from harness.execute.verdict import NO_MEMORY, Verdict

Row: TypeAlias = Mapping[str, Any]
GROW = {"task": ("steps", "prompts_per_batch", "group_size", "max_tokens"), "model": ("layers", "hidden")}
"""Settings that take no less memory where they are larger."""
SHRINK = {"task": ("minibatches", "micro_batches")}
"""Settings that take no less memory where they are smaller."""
FREE = {"task": ("warmup_steps",), "profile": ("memory_limit_gb", "time_limit_s")}
"""Settings that take none; of the profile, the memory limit is looked at for itself."""
SECTIONS = ("task", "model", "adapter", "layout", "track", "profile", "fault", "observer")
"""All else in these has to be equal, for two cells to be of one kind."""


@dataclass(frozen=True)
class _Death:
    """A cell that ran out of memory: how a user finds it, its settings, and the lock and adapter that it ran."""

    name: str
    config: Row
    made_of: Mapping[str, str | None]


class Deaths:
    """Those that this machine has seen: of the runs in one folder, and of the run that goes on."""

    def __init__(self) -> None:
        self._known: list[_Death] = []

    @classmethod
    def read(cls, output: Path, machine: str | None) -> "Deaths":
        """Those in the runs of a folder that were measured on the machine with that id."""
        deaths, found = cls(), list[tuple[str, str, Row, Row]]()
        for path in output.glob(f"*/{MANIFEST}"):
            manifest = json.loads(path.read_text(encoding="utf-8"))
            if (manifest.get("machine") or {}).get("id") != machine:
                continue
            for row in [*manifest.get("null_cells", []), *manifest["cells"]]:
                if config := manifest.get("configs", {}).get(row["cell_id"].rsplit(".r", 1)[0]):
                    name = f"{row['cell_id']} of run {manifest['run_id']}"
                    found.append((row["started"] or "", name, row, config["resolved"]))
        for _, name, row, resolved in sorted(found, key=lambda one: one[:2]):
            deaths.learn(name, row, resolved)
        return deaths

    def learn(self, name: str, row: Row, config: Row) -> None:
        """Keep a cell in mind if it ran out of memory; forget those that one of their kind, no smaller, outlived."""
        made_of = row.get("made_of", {})
        if row["status"] == "ok":
            self._known = [death for death in self._known if not _held(death, made_of, config)]
        if row["status"] == "failed" and (row["reason"] or "").startswith(NO_MEMORY):
            self._known.append(_Death(name, config, made_of))

    def verdict(self, planned: PlannedCell) -> Verdict | None:
        """Why a cell is not started; None where nothing speaks against it."""
        for death in self._known:
            if _held(death, planned.made_of, planned.config):
                reason = f"{death.name}, of its kind and no larger, ran out of memory (--redo failed starts it anyway)"
                return Verdict("not_run", "system", reason)
        return None


def _held(death: _Death, made_of: Mapping[str, str | None], config: Row) -> bool:
    """Whether a cell with `config`, of the same lock and adapter, needs no less than one that died had."""
    same = all(death.made_of.get(key) == made_of.get(key) for key in ("lock", "adapter"))
    return same and needs_no_less(config, death.config)


def needs_no_less(config: Row, died: Row) -> bool:
    """Whether a cell with `config` is of the kind of one that died, no smaller, and has no more memory."""
    if config["profile"]["memory_limit_gb"] > died["profile"]["memory_limit_gb"]:
        return False
    return all(_no_less(section, config.get(section), died.get(section)) for section in SECTIONS)


def _no_less(section: str, ours: Any, theirs: Any) -> bool:
    if not isinstance(ours, Mapping) or not isinstance(theirs, Mapping):
        return bool(ours == theirs)
    apart = [key for key in {*ours, *theirs} if ours.get(key) != theirs.get(key)]
    return all(_covers(section, key, ours.get(key), theirs.get(key)) for key in apart)


def _covers(section: str, key: str, ours: Any, theirs: Any) -> bool:
    if key in FREE.get(section, ()):
        return True
    if ours is None or theirs is None:
        return False
    if key in GROW.get(section, ()):
        return bool(ours > theirs)
    return key in SHRINK.get(section, ()) and bool(ours < theirs)
