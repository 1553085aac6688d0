"""Lays out what a cell imports as it was at a git revision of this checkout, by `git archive` into the cache."""

import ast
import hashlib
import io
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from harness.errors import UserError
from harness.execute.adapter import BUILT_IN, Adapter
from harness.execute.version import SHORT, Version, versions_folder

ROOT = Path(__file__).resolve().parents[2]
IMPORTED = ("harness/__init__.py", "harness/errors.py", "adapters/__init__.py")
ROOMS = ("contract", "probe", "task", "theory")
"""What a cell's process imports of the harness; all else (the plan, the driver, the report) is this checkout's."""
GIT_SECONDS = 120


def checkout_version(adapter: Adapter, variant: str, revision: str) -> Version:
    """The adapter at a revision of this checkout.

    Raises:
        UserError: this is no checkout, it has no such revision, or that has no such adapter.
    """
    commit = _commit(adapter, revision)
    wanted = hashlib.sha256("\n".join(_paths(adapter)).encode()).hexdigest()[:SHORT]
    folder = versions_folder(adapter.name) / f"{commit[:SHORT]}-{wanted}"
    if not folder.is_dir():
        _lay_out(adapter, commit, folder)
    today = adapter.lock(variant)
    lock = folder / BUILT_IN / today.relative_to(adapter.folder.parent) if today else None
    if lock and not lock.is_file():
        raise UserError(f"{adapter.name} at {revision} has no lock {lock.name}")
    name = commit[:SHORT]
    release = f"{adapter.spec['version']} at {name}"
    return Version(name, revision, "checkout", release, lock, folder, code_hash(folder), commit)


def code_hash(folder: Path) -> str:
    """A hash over what the files of a folder do: Python by its syntax tree, in which there are no comments and no
    layout, every other file by its bytes; locks are judged apart, and what Python compiled there is no code."""
    total = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.parent.name not in {"locks", "__pycache__"}):
        total.update(str(path.relative_to(folder)).encode() + b"\0" + _meaning(path) + b"\0")
    return total.hexdigest()


def _meaning(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix != ".py":
        return content
    try:
        return ast.dump(ast.parse(content)).encode()
    except SyntaxError:
        return content


def _commit(adapter: Adapter, revision: str) -> str:
    if not adapter.built_in or not (ROOT / ".git").exists():
        raise UserError(f"{adapter.name} has no framework, and no git checkout that it could be tracked in: give locks")
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    done = _git(*words)
    if done.returncode:
        raise UserError(f"'{revision}' is no revision of this checkout (and no file): write HEAD~1, a tag, or a commit")
    return done.stdout.decode().strip()


def _lay_out(adapter: Adapter, commit: str, folder: Path) -> None:
    """Whole or not at all: another process may want the same."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    archive = _git("archive", "--format=zip", commit, "--", *_paths(adapter))
    if archive.returncode:
        said = archive.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise UserError(f"{adapter.name} cannot be laid out at {commit[:SHORT]}: {' '.join(said)}")
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    with zipfile.ZipFile(io.BytesIO(archive.stdout)) as packed:
        packed.extractall(made)
    with suppress(OSError):  # another process has just laid out the same
        made.rename(folder)
    shutil.rmtree(made, ignore_errors=True)


def _paths(adapter: Adapter) -> Iterator[str]:
    yield from IMPORTED
    yield from (f"harness/{room}" for room in ROOMS)
    yield f"{BUILT_IN}/{adapter.folder.name}"


def _git(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=False, timeout=GIT_SECONDS)
