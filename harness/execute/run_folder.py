"""The folder of a run: found again after a kill, locked while in use, its manifest always whole on disk."""

import fcntl
import json
import secrets
import shutil
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Self

from harness.contract import compact
from harness.contract.seal import write_json
from harness.contract.streams import stream_files
from harness.errors import UserError
from harness.execute.plan import PlannedCell, plan_hash

MANIFEST = "manifest.json"
DONE = "done.json"
PARTS = "parts"
"""Where the jobs of a run that several machines share keep what is theirs alone."""


class RunFolder:
    """One run on disk; holds the lock until the process ends."""

    def __init__(self, path: Path, manifest: dict[str, Any], lock: IO[str]) -> None:
        self.path, self.manifest, self._lock = path, manifest, lock

    @property
    def ledger(self) -> Path:
        """The folder of the sealed ledgers of all cells."""
        return self.path / "ledger"

    def cell(self, cell_id: str) -> Path:
        """The folder of a cell."""
        return self.path / "cells" / cell_id

    def save(self) -> None:
        """Write the manifest; a reader sees the old one or the new one."""
        write_json(self.path / MANIFEST, self.manifest)

    def done(self, planned: PlannedCell) -> dict[str, Any] | None:
        """The row of a cell that already ended under the same key, or None."""
        path = self.cell(planned.cell_id) / DONE
        if not path.exists():
            return None
        row: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return row if row["key"] == planned.key else None

    def holds_only(self, planned: Iterable[PlannedCell], table: str) -> bool:
        """Whether every row in `table` of the manifest is of one of the planned cells, with its key."""
        keys = {cell.cell_id: cell.key for cell in planned}
        return all(keys.get(row["cell_id"]) == row["key"] for row in self.manifest.get(table, []))

    def begin(self, cell_id: str) -> None:
        """Note that a cell starts now: `start_order` is the order in which the cells that count really ran."""
        order = [one for one in self.manifest.get("start_order", []) if one != cell_id]
        self.manifest["start_order"] = [*order, cell_id]
        self.save()

    def keep(self, row: dict[str, Any], table: str) -> None:
        """Put the row of a cell that has ended into `table` of the manifest, in the place of an older one of its."""
        rows = self.manifest.setdefault(table, [])
        ids = [one["cell_id"] for one in rows]
        if row["cell_id"] in ids:
            rows[ids.index(row["cell_id"])] = row
        else:
            rows.append(row)
        self.save()

    def set_aside(self, cell_id: str, table: str) -> None:
        """Make room for a cell that is to run again. Its row goes to `redone` in the manifest, its folder and its
        ledger stay, readable, under the name that stands there as `kept`: null where it never had a folder."""
        (row,) = [row for row in self.manifest[table] if row["cell_id"] == cell_id]
        folder = self.cell(cell_id)
        there = folder.exists()
        aside = folder.with_name(f"{cell_id}.redone{len(list(folder.parent.glob(f'{cell_id}.redone*'))) + 1}")
        self.manifest[table] = [one for one in self.manifest[table] if one["cell_id"] != cell_id]
        self.manifest.setdefault("redone", []).append(row | {"kept": aside.name if there else None})
        self.save()
        if not there:
            return
        folder.rename(aside)
        (aside / "ledger").mkdir()
        for path in self.ledger.glob(f"{cell_id}.*"):
            path.rename(aside / "ledger" / path.name)

    def clear(self, cell_id: str) -> str | None:
        """Make room for a cell. What a torn one left is kept aside, readable; the name of that folder is returned."""
        folder = self.cell(cell_id)
        if not folder.exists():
            return None
        if not stream_files(folder / "streams"):
            shutil.rmtree(folder)
            return None
        number = len(list(folder.parent.glob(f"{cell_id}.torn*"))) + 1
        aside = folder.with_name(f"{cell_id}.torn{number}")
        folder.rename(aside)
        compact(aside / "streams", aside / "ledger", cell_id)
        return aside.name

    def release(self) -> None:
        """Give the lock back."""
        self._lock.close()


class PartFolder(RunFolder):
    """A run folder as the job of one part sees it: cells and ledgers lie in the run's own folders, each under a name
    that no other part has; manifest and lock are the part's."""

    def __init__(self, path: Path, name: str, lock: IO[str]) -> None:
        self.name = name
        manifest = part_manifest(path, name) or {"run_id": path.name, "part": name, "cells": [], "torn": []}
        super().__init__(path, manifest | {"finished": None}, lock)

    @classmethod
    def open(cls, path: Path, name: str) -> Self:
        """The part of that name, as an earlier job left it.

        Raises:
            UserError: another job works on it.
        """
        if (lock := lock_part(path, name)) is None:
            raise UserError(f"another job works on the part {name} of {path.name}")
        return cls(path, name, lock)

    def save(self) -> None:
        """Write the part's manifest."""
        write_json(self.path / PARTS / f"{self.name}.{MANIFEST}", self.manifest)


def part_manifest(run: Path, name: str) -> dict[str, Any] | None:
    """What the job of a part last wrote, or None where it wrote nothing yet."""
    path = run / PARTS / f"{name}.{MANIFEST}"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def lock_part(run: Path, name: str) -> IO[str] | None:
    """The lock of a part, or None while a job works on it."""
    (run / PARTS).mkdir(exist_ok=True)
    return _lock(run / PARTS, f"{name}.lock")


def _lock(path: Path, name: str = ".lock") -> IO[str] | None:
    """The lock of a run folder, or None where another process holds it."""
    file = (path / name).open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file


def hold_run(path: Path) -> RunFolder:
    """A run that is there, whatever became of it.

    Raises:
        UserError: another process works on it.
    """
    if (lock := _lock(path)) is None:
        raise UserError(f"run {path.name} is in use by another rlaxes")
    return RunFolder(path, json.loads((path / MANIFEST).read_text(encoding="utf-8")), lock)


def open_run(output: Path, cells: Sequence[PlannedCell]) -> RunFolder:
    """The unfinished run of the same plan in `output` that nobody works on, or a new one.

    Raises:
        UserError: `output` cannot be written.
    """
    wanted = plan_hash((cell.cell_id, cell.key) for cell in cells)
    try:
        output.mkdir(parents=True, exist_ok=True)
        for path in sorted(output.glob(f"*/{MANIFEST}"), reverse=True):
            manifest = json.loads(path.read_text(encoding="utf-8"))
            if manifest["plan_hash"] == wanted and not manifest["finished"] and (lock := _lock(path.parent)):
                return RunFolder(path.parent, manifest, lock)
        return _new_run(output, wanted)
    except PermissionError as error:
        raise UserError(
            f"cannot write runs to {output}: {error.strerror}; choose another folder with output=..."
        ) from error


def _new_run(output: Path, wanted: str) -> RunFolder:
    created = datetime.now(UTC)
    path = output / f"{created:%Y-%m-%d-%H%M%S}-{secrets.token_hex(2)}"
    path.mkdir()
    lock = _lock(path)
    if lock is None:
        raise UserError(f"{path} is in use by another rlaxes")
    manifest = {
        "schema": 1,
        "run_id": path.name,
        "created": created.isoformat(timespec="seconds"),
        "finished": None,
        "plan_hash": wanted,
        "cells": [],
        "torn": [],
    }
    run = RunFolder(path, manifest, lock)
    run.save()
    return run


def find_run(name: str, output: Path) -> Path:
    """The folder of a run that a user named by its path, its id, or `latest`.

    Raises:
        UserError: there is no such run.
    """
    runs = sorted(path.parent for path in output.glob(f"*/{MANIFEST}"))
    if name == "latest" and runs:
        return runs[-1]
    for candidate in (Path(name), output / name):
        if (candidate / MANIFEST).exists():
            return candidate
    known = f"the newest here is {runs[-1].name}" if runs else f"there are no runs in {output}"
    raise UserError(f"no run {name}: {known}")
