"""One environment per lock, made by uv, in the user's cache folder, shared by all checkouts.

A virtual environment cannot be moved, so it is made where it stays; a marker written last says that it is whole, and
a folder without the marker is removed and made anew.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from uv import find_uv_bin

from harness.errors import PrerequisiteError, UserError
from harness.execute.pip_settings import find_links_wheels, uv_environment

COMPLETE = ".rlaxes-complete.json"
PINNED = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>[^\s;\\]+)", re.MULTILINE)
Say = Callable[[str], None]


@dataclass(frozen=True)
class Environment:
    """A whole environment: its interpreter, its name (adapter, profile, hash), its lock's SHA-256, its folder."""

    name: str
    python: Path
    lock_hash: str
    path: Path


def cache_folder() -> Path:
    """`RLAXES_CACHE`, or rlaxes' folder in the user's cache."""
    if own := os.environ.get("RLAXES_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "rlaxes"


def environments_folder() -> Path:
    """Where all environments lie."""
    return cache_folder() / "env"


def lock_hash(lock: Path) -> str:
    """The SHA-256 of a lock.

    Raises:
        UserError: there is no such file.
    """
    if not lock.exists():
        raise UserError(f"there is no lock {lock}: compile it with `make locks`")
    return hashlib.sha256(lock.read_bytes()).hexdigest()


def environment_name(adapter: str, lock: Path, python: str) -> str:
    """Adapter, profile, and the first 12 digits of the hash over lock and Python version."""
    digest = hashlib.sha256(f"{lock_hash(lock)} {python}".encode()).hexdigest()
    return f"{adapter}-{lock.stem}-{digest[:12]}"


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
    name = environment_name(adapter, lock, python)
    path = environments_folder() / name
    environment = Environment(name, path / "bin" / "python", lock_hash(lock), path)
    if (path / COMPLETE).exists():
        return environment
    with _exclusive(path, say):
        if not (path / COMPLETE).exists():
            _make(environment, lock, python, say)
    return environment


@contextmanager
def _exclusive(path: Path, say: Say) -> Iterator[None]:
    """Let one process make an environment while others wait for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(path.name + ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say(f"waiting for another rlaxes to finish the environment {path.name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _make(environment: Environment, lock: Path, python: str, say: Say) -> None:
    path = environment.path
    if path.exists():
        say(f"removing the half-made environment {environment.name}")
        shutil.rmtree(path)
    say(f"making the environment {environment.name} with Python {python}")
    _uv(["venv", "--quiet", "--python", python, str(path)], say)
    say(
        f"installing {len(PINNED.findall(lock.read_text(encoding='utf-8')))} packages from {lock.name} (by their hashes)"
    )
    target = ["--python", str(environment.python)]
    _uv(["pip", "sync", "--require-hashes", *target, *torch_backend(lock), str(lock)], say)
    content = {"lock_hash": environment.lock_hash, "lock": lock.name, "python": python}
    (path / COMPLETE).write_text(json.dumps(content), encoding="utf-8")


def torch_backend(lock: Path) -> list[str]:
    """Let uv take PyTorch's CPU build from where PyTorch publishes it, unless pip is already set up with one.

    PyPI's own torch is a CUDA build whose libraries a CPU lock does not list.
    """
    pins = dict(PINNED.findall(lock.read_text(encoding="utf-8")))
    if "torch" not in pins or not lock.stem.startswith("cpu"):
        return []
    wheels = find_links_wheels(uv_environment(), f"torch-{pins['torch'].split('+')[0]}+cpu-*.whl")
    return [] if wheels else ["--torch-backend", "cpu"]


def _uv(words: list[str], say: Say) -> None:
    argv = [find_uv_bin(), *words]
    try:
        process = subprocess.Popen(
            argv, env=uv_environment(), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
    except OSError as error:
        raise PrerequisiteError(f"uv cannot be started: {error}") from error
    lines = []
    for line in process.stderr or ():
        lines.append(line.strip())
        if re.match(r"(Resolved|Prepared|Installed|Downloaded|Building|Built)\b", lines[-1]):
            say(f"  {lines[-1]}")
    if process.wait():
        raise PrerequisiteError(explain_uv(words[:2], " ".join(line for line in lines if line)))


def explain_uv(command: list[str], message: str) -> str:
    """uv's failure as one line that says how to mend it."""
    short = message[-400:]
    if "No space left" in message or f"os error {errno.ENOSPC}" in message:
        return (
            f"the disk that holds {cache_folder()} is full: free some, or set RLAXES_CACHE to another folder ({short})"
        )
    if re.search(r"hash mismatch|Hash mismatch|do not match", message):
        return f"a package does not have the hash that the lock names; nothing was installed: {short}"
    if re.search(
        r"error sending request|dns error|Failed to fetch|Could not connect|Connection refused|timed out", message
    ):
        return f"no package index answers: set up the network or pip's index-url/find-links, then run the same again ({short})"
    if "No interpreter found" in message or "No download found" in message:
        return f"there is no such Python here, and uv could not fetch it: install it, then run the same again ({short})"
    return f"uv {' '.join(command)} failed: {short}"


def list_environments() -> list[Environment]:
    """Every whole environment in the cache, by name."""
    found = []
    for marker in sorted(environments_folder().glob(f"*/{COMPLETE}")):
        content = json.loads(marker.read_text(encoding="utf-8"))
        path = marker.parent
        found.append(Environment(path.name, path / "bin" / "python", content["lock_hash"], path))
    return found


def remove_environment(name: str) -> None:
    """Remove an environment, whole or half-made.

    Raises:
        UserError: there is none of that name.
    """
    path = environments_folder() / name
    if path.parent != environments_folder() or not path.is_dir():
        known = ", ".join(environment.name for environment in list_environments()) or "none"
        raise UserError(f"no environment {name}; there are: {known}")
    (path / COMPLETE).unlink(missing_ok=True)
    shutil.rmtree(path)
    path.with_name(path.name + ".lock").unlink(missing_ok=True)


INSTALLED = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"


def canonical(name: str) -> str:
    """A distribution's name as PyPI compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def diff_environment(environment: Environment, lock: Path) -> list[str]:
    """What an environment has otherwise than its lock says, one line a package; empty where they agree."""
    done = subprocess.run(
        [str(environment.python), "-c", INSTALLED], capture_output=True, text=True, check=False, cwd=environment.path
    )
    if done.returncode:
        return [f"its Python does not run: {done.stderr.strip().splitlines()[-1:]}"]
    installed = {canonical(name): version for name, version in json.loads(done.stdout).items()}
    pinned = {canonical(name): version for name, version in PINNED.findall(lock.read_text(encoding="utf-8"))}
    lines = []
    for name in sorted(installed.keys() | pinned.keys()):
        found, wanted = installed.get(name), pinned.get(name)
        if found is None:
            lines.append(f"{name} {wanted} is missing")
        elif wanted is None:
            lines.append(f"{name} {found} is not in the lock")
        elif found.split("+")[0] != wanted.split("+")[0]:
            lines.append(f"{name} is {found} where the lock says {wanted}")
    return lines
