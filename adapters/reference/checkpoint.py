"""Checkpoints on disk: a folder is whole or it is not there [12.5.1]. Standard library only.

Files are written into `step-<n>.partial`, each forced to the disk, the manifest with their hashes last; then the folder
is forced to the disk and renamed. A crash or a full disk at any byte therefore leaves the last whole one as it was.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.probe.faults import Faults

MANIFEST, PARTIAL = "manifest.json", ".partial"


@dataclass(frozen=True)
class Written:
    """A file that is on disk."""

    sha256: str
    bytes: int


@dataclass(frozen=True)
class TrainerPart:
    """What one rank of the trainer wrote of a checkpoint or found after loading one: its files, the digest of each item
    of its state, and the policy version."""

    files: dict[str, Written]
    items: dict[str, str]
    version: int


@dataclass(frozen=True)
class Checkpoint:
    """A whole checkpoint; `facts` is what was committed beside its files."""

    path: Path
    step: int
    facts: dict[str, Any]

    def read_json(self, name: str) -> Any:
        """The content of one of its JSON files."""
        return json.loads((self.path / name).read_text(encoding="utf-8"))


def write_file(path: Path, pieces: Iterable[Any], faults: Faults) -> Written:
    """Write the pieces (anything with a buffer of bytes) one after another, hashed on the way, and force them to disk.

    Raises OSError where the disk refuses them; what was written stays, for the caller to remove with its folder.
    """
    digest, size = hashlib.sha256(), 0
    with path.open("wb", buffering=0) as file:
        for piece in pieces:
            view = memoryview(piece).cast("B")
            _write(file.fileno(), view, faults)
            digest.update(view)
            size += len(view)
        os.fsync(file.fileno())
    return Written(digest.hexdigest(), size)


def write_json(path: Path, content: Any, faults: Faults) -> Written:
    """Write content as JSON, as `write_file` does."""
    return write_file(path, [json.dumps(content, sort_keys=True, indent=1).encode()], faults)


def digest_of(content: Any) -> str:
    """SHA-256 of content as JSON with sorted keys; floats count with all their digits."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def merged_parts(parts: Sequence[TrainerPart]) -> TrainerPart:
    """The parts of all ranks as one: each rank has a random state of its own, all else the first one answers for."""
    files = {name: file for part in parts for name, file in part.files.items()}
    draws = digest_of([part.items["rng"] for part in parts])
    return TrainerPart(files, parts[0].items | {"rng": draws}, parts[0].version)


class CheckpointStore:
    """The checkpoints of one cell, below `folder`, of which the newest `keep` stay. One writer at a time."""

    def __init__(self, folder: Path, keep: int, faults: Faults) -> None:
        self._folder, self._keep, self._faults = folder, keep, faults

    def begin(self, step: int) -> Path:
        """An empty folder to write the files of a checkpoint into; what an earlier writer left half done is removed."""
        self.clear()
        partial = self._folder / f"step-{step}{PARTIAL}"
        partial.mkdir(parents=True)
        return partial

    def commit(self, partial: Path, files: Mapping[str, Written], facts: Mapping[str, Any]) -> Checkpoint:
        """Make a checkpoint of the folder that `begin` gave and of the files that lie in it, all on disk already."""
        content = {"files": {name: asdict(file) for name, file in files.items()}, "facts": dict(facts)}
        write_json(partial / MANIFEST, content | {"sha256": digest_of(content)}, self._faults)
        _sync_folder(partial)
        path = partial.with_suffix("")
        if path.exists():
            path.rename(path.with_name(f"{path.name}.replaced{PARTIAL}"))
        partial.rename(path)
        for folder in (self._folder, self._folder.parent):
            _sync_folder(folder)
        self._prune()
        return Checkpoint(path, _step(path), dict(facts))

    def clear(self) -> None:
        """Remove what was begun and never committed."""
        for left in self._folder.glob(f"*{PARTIAL}"):
            shutil.rmtree(left, ignore_errors=True)

    def newest(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest checkpoint whose every file is as it was written, None where there is none; and of each newer
        one that was refused, why."""
        refused: list[str] = []
        for path in self._all():
            try:
                return _read(path), refused
            except (OSError, ValueError, KeyError) as error:
                refused.append(f"{path.name}: {error}")
        return None, refused

    def _all(self) -> list[Path]:
        found = [path for path in self._folder.glob("step-*") if path.suffix != PARTIAL]
        return sorted(found, key=_step, reverse=True)

    def _prune(self) -> None:
        for old in self._all()[self._keep :]:
            # Half removed it would look like one that was torn.
            old.rename(old.with_name(old.name + PARTIAL))
        self.clear()


def _write(descriptor: int, view: memoryview, faults: Faults) -> None:
    left = view
    while left:
        room = faults.room("checkpoint.write")
        written = os.write(descriptor, left if room is None else left[:room])
        if faults.at("checkpoint.write", passings=written):
            last = os.lseek(descriptor, 0, os.SEEK_CUR) - 1
            os.pwrite(descriptor, bytes([view[len(view) - len(left) + written - 1] ^ 0xFF]), last)
        left = left[written:]


def _read(path: Path) -> Checkpoint:
    manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    if manifest.pop("sha256") != digest_of(manifest):
        raise ValueError(f"{MANIFEST} is not as it was written")
    for name, expected in manifest["files"].items():
        with (path / name).open("rb") as file:
            found = Written(hashlib.file_digest(file, "sha256").hexdigest(), os.fstat(file.fileno()).st_size)
        if found != Written(**expected):
            raise ValueError(f"{name} is not as it was written")
    return Checkpoint(path, _step(path), manifest["facts"])


def _step(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
