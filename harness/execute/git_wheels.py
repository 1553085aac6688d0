"""Builds a wheel of a framework at a git revision, once, into the cache."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from harness.errors import PrerequisiteError
from harness.execute.adapter import Adapter
from harness.execute.environments import interpreter_of
from harness.execute.uv_process import Say, run_uv
from harness.execute.version import SHORT, versions_folder

COMMIT = re.compile(r"[0-9a-f]{40}")
FETCH_SECONDS = 600


def without_password(url: str) -> str:
    """A url as it may be printed and published."""
    return re.sub(r"(?<=://)[^@/]*@", "", url)


def wheel_of(adapter: Adapter, url: str, ref: str, say: Say) -> tuple[Path, str]:
    """The wheel of a revision, built now if it is not there, and its commit. What its build asks for is taken as the
    index has it.

    Raises:
        PrerequisiteError: it cannot be fetched or built.
    """
    if COMMIT.fullmatch(ref) and (built := list((versions_folder(adapter.name) / ref).glob("*.whl"))):
        return built[0], ref
    with tempfile.TemporaryDirectory() as name:
        source = Path(name)
        _git(source, url, "init", "--quiet")
        say(f"fetching {ref} of {without_password(url)}")
        _git(source, url, "fetch", "--quiet", "--depth", "1", "--end-of-options", url, ref)
        commit = _git(source, url, "rev-parse", "FETCH_HEAD^{commit}")
        folder = versions_folder(adapter.name) / commit
        if not list(folder.glob("*.whl")):
            _git(source, url, "checkout", "--quiet", commit)
            say(f"building a wheel of {adapter.name} from {commit[:SHORT]}")
            made = source / "rlaxes-wheel"
            stamp = _git(source, url, "log", "-1", "--format=%ct")
            words = ["build", "--wheel", "--python", interpreter_of(adapter.spec["python"]), "--out-dir", str(made)]
            run_uv([*words, str(source)], say, source, also={"SOURCE_DATE_EPOCH": stamp})
            folder.mkdir(parents=True, exist_ok=True)
            for wheel in made.glob("*.whl"):
                shutil.copyfile(wheel, folder / f"{wheel.name}.partial")
                (folder / f"{wheel.name}.partial").replace(folder / wheel.name)
        return next(folder.glob("*.whl")), commit


def _git(folder: Path, url: str, *words: str) -> str:
    """Run git; it asks nobody for a password.

    Raises:
        PrerequisiteError: it failed, with its last line.
    """
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, timeout=FETCH_SECONDS,
            env=os.environ | {"GIT_TERMINAL_PROMPT": "0"},
        )  # fmt: skip
    except subprocess.SubprocessError as error:
        shown = without_password(url)
        said = [line.replace(url, shown) for line in (getattr(error, "stderr", None) or str(error)).splitlines()[-1:]]
        raise PrerequisiteError(f"git {words[0]} of {shown} failed: {' '.join(said)}") from error
    return done.stdout.strip()
