"""Runs uv: what it does as lines for the user, what goes wrong as one line that says how to mend it."""

import errno
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from uv import find_uv_bin

from harness.errors import PrerequisiteError
from harness.execute.pip_settings import uv_command, uv_environment

Say = Callable[[str], None]
WORTH_SAYING = re.compile(r"(Resolved|Prepared|Installed|Downloading|Building|Built)\b")
NETWORK = re.compile(
    r"error sending request|dns error|tcp connect|[Cc]onnection (?:refused|reset)|timed out|HTTP status|"
    r"network connectivity is disabled|couldn't be fetched"
)
SHOWN = 400


def mute(line: str) -> None:
    """A receiver of progress that says nothing."""


class UvError(PrerequisiteError):
    """uv ended with an error; `output` is all it wrote."""

    def __init__(self, message: str, output: str) -> None:
        super().__init__(message)
        self.output = output

    @property
    def network(self) -> bool:
        """Whether what was missing is an answer from a package index."""
        return bool(NETWORK.search(self.output))


def run_uv(
    words: Sequence[str],
    say: Say,
    folder: Path,
    *,
    inherited: Sequence[int] = (),
    without: Sequence[str] = (),
    also: Mapping[str, str] | None = None,
) -> None:
    """Run uv to its end.

    Args:
        words: its arguments.
        say: receives uv's own lines of progress.
        folder: where it runs; a folder with no `pyproject.toml` above it, whose settings uv would take.
        inherited: file descriptors that stay open for as long as uv runs (a held lock).
        without: variables that uv is not to see.
        also: variables that it is to see besides.

    Raises:
        UvError: it failed; the message says what, where, and how to mend it.
    """
    command = uv_command(find_uv_bin(), words)
    env = uv_environment(locked="--require-hashes" in words)
    env = {name: value for name, value in env.items() if name not in without} | dict(also or {})
    written = []
    with subprocess.Popen(
        command, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, errors="replace", pass_fds=inherited,
    ) as process:  # fmt: skip
        for line in process.stderr or ():
            written.append(line)
            if WORTH_SAYING.match(line.strip()):
                say(f"  {line.strip()}")
    if process.returncode:
        output = "".join(written)
        raise UvError(explain(words, output, folder), output)


def explain(words: Sequence[str], output: str, folder: Path) -> str:
    """uv's failure as one line: what happened, where, and what mends it."""
    said = _essence(output)
    if "No space left" in output or f"os error {errno.ENOSPC})" in output:
        return f"the disk that holds {folder} or uv's cache is full: free some space, or set RLAXES_CACHE ({said})"
    if "ash mismatch" in output or "Hash-checking" in output:
        return (
            f"a package is not the one that the lock names, nothing was installed: use an index or find-links folder "
            f"with the original files, or compile the lock anew with `make locks` ({said})"
        )
    if "No interpreter found" in output or "No download found" in output:
        return f"that Python is not installed and uv could not fetch it: install it, then run the same again ({said})"
    if NETWORK.search(output):
        return (
            f"no package index answers: mend the network, or pip's index-url or find-links, "
            f"then run the same again ({said})"
        )
    if "Failed to build" in output:
        return (
            f"a package that is published as source only could not be built: install a C compiler and Python's headers "
            f"(gcc and python3-dev), then run the same again ({said})"
        )
    return f"uv {' '.join(words[:2])} failed: {said}"


def _essence(output: str) -> str:
    """uv's error without the warnings and progress before it, on one line, cut to a readable length."""
    start = re.search(r"^(?:error:|\s*×)", output, re.MULTILINE)
    text = " ".join(output[start.start() if start else 0 :].split())
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
