"""Compiles the hashed locks from the extras of pyproject.toml: `python -m harness.execute.locks` (that is `make locks`).

A lock names no index and no folder. Torch is written without its build tag, with the hashes of PyPI's own files and of
the CPU build found where pip looks, so that either satisfies it.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from uv import find_uv_bin

from harness.errors import PrerequisiteError
from harness.execute.adapter import find_adapters
from harness.execute.pip_settings import uv_environment

ROOT = Path(__file__).resolve().parents[2]
HARNESS_LOCK = ROOT / "locks" / "harness.txt"
HASH = re.compile(r"sha256:[0-9a-f]{64}")
QUIET = ("--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links", "--generate-hashes", "--quiet")


@dataclass(frozen=True)
class LockJob:
    """One lock to compile: from which requirements, into which file, for which Python, without which packages."""

    requirements: tuple[str, ...]
    target: Path
    python: str
    left_out: tuple[str, ...] = ()
    universal: bool = False


def lock_jobs() -> list[LockJob]:
    """The harness's own lock, and one for each profile of each adapter of this repository."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    jobs = [LockJob((*project["dependencies"], *extras["dev"]), HARNESS_LOCK, "3.11", universal=True)]
    for adapter in find_adapters().values():
        for profile in adapter.spec["profiles"].values():
            if profile.get("lock") and adapter.folder.is_relative_to(ROOT / "adapters"):
                left_out = tuple(profile.get("left_out", ()))
                wanted = tuple(extras[profile["extra"]])
                jobs.append(LockJob(wanted, adapter.folder / profile["lock"], adapter.spec["python"], left_out))
    return list({job.target: job for job in jobs}.values())


def compile_lock(job: LockJob) -> str:
    """The text of a lock.

    Raises:
        PrerequisiteError: the requirements cannot be resolved, or no index answers.
    """
    options = [word for name in job.left_out for word in ("--no-emit-package", name)]
    if job.universal:
        options.append("--universal")
    text = _uv_compile(job.requirements, job.python, options)
    return text if any("vllm" in word for word in job.requirements) else _open_torch(text, job.python)


def _uv_compile(requirements: Sequence[str], python: str, options: Sequence[str], *, find_links: bool = True) -> str:
    env = uv_environment()
    env.pop("UV_EXTRA_INDEX_URL", None)  # a partial mirror lists fewer files, and a lock needs the hashes of all
    if not find_links:
        env.pop("UV_FIND_LINKS", None)
    argv = [find_uv_bin(), "pip", "compile", "-", "--python-version", python, *QUIET, *options]
    done = subprocess.run(argv, input="\n".join(requirements), env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PrerequisiteError(f"uv could not resolve {', '.join(requirements)}: {' '.join(done.stderr.split())}")
    return done.stdout


def _open_torch(text: str, python: str) -> str:
    """Write `torch==X+cpu` as `torch==X`, with the hashes of PyPI's files beside that of the CPU build."""
    entry = re.search(r"^torch==(?P<version>[\w.]+)\+cpu(?P<rest>(?:.*\\\n)(?:    --hash.*\n)+)", text, re.MULTILINE)
    if entry is None:
        return text
    pinned = f"torch=={entry['version']}"
    public = _uv_compile([pinned], python, ["--no-deps"], find_links=False)
    hashes = sorted({*HASH.findall(entry["rest"]), *HASH.findall(public)})
    line = " \\\n".join([pinned, *(f"    --hash={value}" for value in hashes)])
    return text.replace(entry[0], line + "\n")


def main() -> None:
    """Compile every lock and say which changed."""
    wanted = sys.argv[1:]
    for job in lock_jobs():
        name = str(job.target.relative_to(ROOT))
        if wanted and name not in wanted:
            continue
        text = compile_lock(job)
        changed = not job.target.exists() or job.target.read_text(encoding="utf-8") != text
        job.target.parent.mkdir(parents=True, exist_ok=True)
        job.target.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{name}: {'changed' if changed else 'unchanged'}\n")


if __name__ == "__main__":
    main()
