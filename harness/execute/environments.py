"""One environment per lock, made by uv, in the user's cache folder, shared by all checkouts.

A virtual environment cannot be moved, so it is made where it stays; a marker written last says that it is whole, and
a folder without the marker is removed and made anew.
"""

import fcntl
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.errors import PrerequisiteError, UserError
from harness.execute.pip_settings import find_links_wheels, uv_environment
from harness.execute.requirement_lock import lock_hash, pins
from harness.execute.uv_process import Say, UvError, mute, run_uv

COMPLETE = ".rlaxes-complete.json"
LOCK_COPY = "rlaxes-lock.txt"


@dataclass(frozen=True)
class Environment:
    """A whole environment. `name` is adapter, profile and the first 12 digits of a hash over lock and Python version;
    `lock_hash` the SHA-256 of its lock; `size_bytes` what it takes on the disk (shared with uv's cache or not)."""

    name: str
    python: Path
    lock_hash: str
    path: Path
    python_version: str
    packages: int
    size_bytes: int

    @property
    def lock(self) -> Path:
        """Its own copy of the lock it was made from."""
        return self.path / LOCK_COPY


def cache_folder() -> Path:
    """`RLAXES_CACHE`, or rlaxes' folder in the user's cache."""
    if own := os.environ.get("RLAXES_CACHE"):
        return Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "rlaxes"


def environments_folder() -> Path:
    """Where all environments lie."""
    return cache_folder() / "env"


def environment_name(adapter: str, lock: Path, python: str) -> str:
    """Adapter, profile, and the first 12 digits of the hash over lock and Python version.

    Raises:
        UserError: there is no such lock.
    """
    digest = hashlib.sha256(f"{lock_hash(lock)} {python}".encode()).hexdigest()
    return f"{adapter}-{lock.stem}-{digest[:12]}"


def find_environment(adapter: str, lock: Path, python: str) -> Environment | None:
    """The environment of a lock, if it is there and whole."""
    return _read(environments_folder() / environment_name(adapter, lock, python))


def ensure_environment(adapter: str, lock: Path, python: str, say: Say) -> Environment:
    """The whole environment of a lock, made now if it is not there.

    Args:
        adapter: the adapter's name.
        lock: a fully resolved, hashed requirements file; exactly what it lists is installed.
        python: the Python version, e.g. `3.11`.
        say: receives one line for each thing that is done.

    Raises:
        UserError: there is no such lock.
        PrerequisiteError: no such Python, no network, a wrong hash, or a full disk; the message says which.
    """
    path = environments_folder() / environment_name(adapter, lock, python)
    if found := _read(path):
        return found
    try:
        with _exclusive(path, say) as held:
            return _read(path) or _make(path, lock, python, say, held)
    except OSError as error:
        raise PrerequisiteError(f"cannot write in {path.parent} ({error}): mend that, or set RLAXES_CACHE") from error


def _read(path: Path) -> Environment | None:
    """What the marker says; None where there is none, or where the Python that the environment stands on is gone."""
    try:
        content: dict[str, Any] = json.loads((path / COMPLETE).read_text(encoding="utf-8"))
        environment = Environment(path.name, path / "bin" / "python", path=path, **content)
    except (OSError, ValueError, TypeError):
        return None
    return environment if environment.python.exists() and environment.lock.exists() else None


@contextmanager
def _exclusive(path: Path, say: Say) -> Iterator[int]:
    """Let one process make or remove an environment while others wait; yields the descriptor that holds the lock.

    The lock file is never removed: a process that waits for it would hold one that the next process cannot see.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(path.name + ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say(f"waiting for another rlaxes that is at work on the environment {path.name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def _make(path: Path, lock: Path, python: str, say: Say, held: int) -> Environment:
    if path.exists():
        say(f"removing the half-made environment {path.name}")
        shutil.rmtree(path)
    text = lock.read_text(encoding="utf-8")
    say(f"making the environment {path.name} with Python {python}")
    # uv inherits the lock: killed with this process or not, nobody else touches the folder while it writes there.
    run_uv(["venv", "--python", interpreter_of(python), str(path)], say, path.parent, inherited=[held])
    (path / LOCK_COPY).write_text(text, encoding="utf-8")
    interpreter = path / "bin" / "python"
    say(f"installing the {len(pins(text))} packages of {lock.parent.parent.name}/{lock.name} (checked by hash)")
    arguments = ["--require-hashes", *torch_backend(text, lock.stem, python), "--python", str(interpreter)]
    _install([*arguments, str(path / LOCK_COPY)], say, path.parent, held)
    made = Environment(path.name, interpreter, lock_hash(lock), path, python, len(pins(text)), _size(path))
    content = {key: value for key, value in asdict(made).items() if key not in {"name", "python", "path"}}
    (path / COMPLETE).write_text(json.dumps(content), encoding="utf-8")
    say(f"environment {path.name} is ready, {made.size_bytes / 2**30:.1f} GiB")
    return made


def interpreter_of(python: str) -> str:
    """This interpreter where it has the version (uv's own search may meet broken ones); else uv finds or fetches it."""
    mine = f"{sys.version_info.major}.{sys.version_info.minor}"
    return str(getattr(sys, "_base_executable", sys.executable)) if mine == python else python


def _install(arguments: list[str], say: Say, folder: Path, held: int) -> None:
    """Install by the lock; where no index answers, from uv's own cache, if all of it lies there. Compiled at once: a
    cell is several processes, and each would take seconds to compile the same files."""
    try:
        run_uv(["pip", "sync", "--compile-bytecode", *arguments], say, folder, inherited=[held])
    except UvError as error:
        if not error.network:
            raise
        say("no package index answers: trying what was downloaded before")
        try:
            run_uv(["pip", "sync", "--compile-bytecode", "--offline", *arguments], say, folder, inherited=[held])
        except UvError:
            raise error from None


def torch_backend(lock_text: str, profile: str, python: str) -> list[str]:
    """Let uv take PyTorch's CPU build from where PyTorch publishes it, unless pip is already set up with one.

    PyPI's own torch for Linux is a CUDA build whose libraries the lock of a CPU profile does not list.
    """
    version = pins(lock_text).get("torch")
    if version is None or not profile.startswith("cpu"):
        return []
    tag = "cp" + python.replace(".", "")
    wheels = find_links_wheels(uv_environment(), f"torch-{version.split('+')[0]}+cpu-{tag}-*.whl")
    return [] if wheels else ["--torch-backend", "cpu"]


def _size(path: Path) -> int:
    """Bytes that the files of a folder take on the disk."""
    files = (entry.lstat() for entry in path.rglob("*") if not entry.is_dir())
    return sum(stat.st_blocks * 512 for stat in files)


def list_environments() -> list[Environment]:
    """Every whole environment in the cache, by name."""
    found = (_read(marker.parent) for marker in sorted(environments_folder().glob(f"*/{COMPLETE}")))
    return [environment for environment in found if environment]


def remove_environment(name: str, say: Say = mute) -> None:
    """Remove an environment, whole or half-made; waits for a process that is at work on it.

    Raises:
        UserError: there is none of that name.
    """
    folder = environments_folder()
    present = sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []
    if name not in present:
        raise UserError(f"no environment {name}; there are: {', '.join(present) or 'none'}")
    with _exclusive(folder / name, say):
        (folder / name / COMPLETE).unlink(missing_ok=True)
        shutil.rmtree(folder / name)
