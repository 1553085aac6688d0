"""One of the versions of a system that are compared: what its cells run."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness.execute.environments import cache_folder

Kind = Literal["release", "git", "lock", "checkout"]
SHORT = 9
"""Digits of a hash in a name."""


def versions_folder(adapter: str) -> Path:
    """Where the locks, wheels and sources of an adapter's versions lie."""
    return cache_folder() / "versions" / adapter


@dataclass(frozen=True)
class Version:
    """A state of the code of one adapter.

    Attributes:
        name: what stands after the `@` of a label: a release, or a kind and the first digits of a hash.
        word: what the user wrote.
        release: the framework's own version in the lock, or the adapter's.
        lock: the requirement lock of its cells; None where they run in the harness's interpreter.
        source: the folder that its cells import `harness` and `adapters` from; None for this checkout's.
        code: a hash over those sources without comments and layout; empty where `source` is None.
        commit: of the git revision, where it is one.
        unhashed: what of it no lock holds by hash, in words; empty where everything is held.
    """

    name: str
    word: str
    kind: Kind
    release: str
    lock: Path | None
    source: Path | None = None
    code: str = ""
    commit: str | None = None
    unhashed: str = ""

    @property
    def hash(self) -> str:
        """What decides what its cells run: two versions of one hash are the same."""
        locked = lock_body_hash(self.lock.read_text(encoding="utf-8")) if self.lock else ""
        return hashlib.sha256(f"{locked} {self.code}".encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """For a manifest and for `--json`, which may be published: no path of this machine."""
        lock = hashlib.sha256(self.lock.read_bytes()).hexdigest() if self.lock else None
        shown = {"name": self.name, "word": self.word, "kind": self.kind, "release": self.release}
        return shown | {"commit": self.commit, "hash": self.hash, "lock_sha256": lock, "unhashed": self.unhashed}


def lock_body_hash(text: str) -> str:
    """A hash over the entries of a lock: comments and empty lines decide nothing."""
    lines = (line.rstrip() for line in text.splitlines())
    return hashlib.sha256("\n".join(line for line in lines if line and not line.startswith("#")).encode()).hexdigest()
