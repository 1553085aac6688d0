"""Compiles the hashed locks from the extras of pyproject.toml: `python -m harness.execute.locks`, or `make locks`.

A version that an older lock holds is kept where it still satisfies; delete the lock to move everything to the newest.
A lock names no index and no folder. In the lock of a CPU profile torch is the CPU build on Linux, with the hash of the
file found where pip looks (or where uv's `--torch-backend cpu` does), and PyPI's own elsewhere.

What the packages of an extra say of each other is taken as it stands, but for two tables under `[tool.rlaxes]`, each by
the name of the extra: `left-out` lists packages that something asks for and nothing here calls; `overrides` lists
requirements that replace what any package says of that name (`transformers==5.19.0` where one pins it lower and another
higher). A package that is published as source only is built by uv apart from the environment, with what it declares to
need and nothing else: DeepSpeed then finds no torch and builds no kernels, which a CPU run has no use for.
"""

import hashlib
import json
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.execute.adapter import SPEC, Adapter, find_adapters
from harness.execute.environments import torch_backend
from harness.execute.uv_process import mute, run_uv

ROOT = Path(__file__).resolve().parents[2]
PROJECT_FILE = ROOT / "pyproject.toml"
HARNESS_LOCK = ROOT / "locks" / "harness.txt"
EXPORT, EXPORT_PYTHON = "export", "3.11"
EXPORT_LOCK = ROOT / "harness" / "export" / "locks" / "tools.txt"
"""Of the environment that `rlaxes export` hands a run to MLflow, W&B and trackio in; no cell runs in it."""
HASH = re.compile(r"sha256:[0-9a-f]{64}")
CPU_TORCH = re.compile(r"^torch==(?P<version>[\w.]+)\+cpu(?P<rest> \\\n(?:    --hash=[^\n]*\n?)+)", re.MULTILINE)


@dataclass(frozen=True)
class LockJob:
    """One lock to compile: from which requirements, into which file, for which Python, without which packages; an
    override takes the place of what any package asks of that name."""

    requirements: tuple[str, ...]
    target: Path
    python: str
    left_out: tuple[str, ...] = ()
    universal: bool = False
    overrides: tuple[str, ...] = ()
    made_by: str = "`make locks` from pyproject.toml"

    @property
    def digest(self) -> str:
        """The SHA-256 of all that decides what the lock has to hold."""
        inputs: list[Any] = [sorted(self.requirements), self.python, sorted(self.left_out), self.universal]
        inputs += [sorted(self.overrides)] if self.overrides else []
        return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()

    @property
    def on_cpu(self) -> bool:
        """Whether torch has to be a CPU build here."""
        return self.target.stem.startswith("cpu")


def read_project() -> dict[str, Any]:
    """The content of this checkout's pyproject.toml; empty where rlaxes is no checkout."""
    return tomllib.loads(PROJECT_FILE.read_text(encoding="utf-8") if PROJECT_FILE.exists() else "")


def harness_job(content: dict[str, Any]) -> LockJob:
    """The harness's own lock: what it needs to run, be tested and be installed, for every Python that it runs on."""
    project = content["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["dev"], *content["build-system"]["requires"]]
    return LockJob(tuple(needed), HARNESS_LOCK, project["requires-python"].strip(">="), universal=True)


def export_job(content: dict[str, Any]) -> LockJob:
    """The lock of the tools that `rlaxes export` writes with."""
    wanted = tuple(content["project"]["optional-dependencies"]["export"])
    return LockJob(wanted, EXPORT_LOCK, EXPORT_PYTHON, universal=True)


def adapter_job(adapter: Adapter, profile: str, content: dict[str, Any]) -> LockJob | None:
    """The lock of an adapter's profile: a third party's from `requires`, `left_out` and `overrides` of the profile in
    its own adapter.yaml, this checkout's from the profile's `extra`. None where it has no lock, or nobody says here
    what it was compiled from.

    Args:
        content: that of this checkout's pyproject.toml; empty where rlaxes is no checkout.
    """
    spec = adapter.spec["profiles"][profile]
    if not spec.get("lock"):
        return None
    if "requires" in spec:
        wanted, left_out, overrides = (tuple(spec.get(key, ())) for key in ("requires", "left_out", "overrides"))
        target, python = adapter.folder / spec["lock"], adapter.spec["python"]
        made_by = f"`rlaxes env lock {adapter.name}` from {SPEC}"
        return LockJob(wanted, target, python, left_out, overrides=overrides, made_by=made_by)
    if not adapter.built_in or not content:
        return None
    ours = content["tool"]["rlaxes"]
    left_out = tuple(ours["left-out"].get(spec["extra"], ()))
    overrides = tuple(ours.get("overrides", {}).get(spec["extra"], ()))
    wanted = tuple(content["project"]["optional-dependencies"][spec["extra"]])
    return LockJob(wanted, adapter.folder / spec["lock"], adapter.spec["python"], left_out, overrides=overrides)


def lock_jobs() -> list[LockJob]:
    """The harness's own lock, that of the tools of an export, and one for each profile of each adapter of this
    repository."""
    content = read_project()
    jobs = {HARNESS_LOCK: harness_job(content), EXPORT_LOCK: export_job(content)}
    for adapter in find_adapters().values():
        if adapter.built_in:
            jobs |= {job.target: job for job in adapter_jobs(adapter)}
    return list(jobs.values())


def adapter_jobs(adapter: Adapter) -> list[LockJob]:
    """One for each profile of an adapter that says what its lock is compiled from."""
    content = read_project()
    found = (adapter_job(adapter, profile, content) for profile in adapter.spec["profiles"])
    return [job for job in found if job]


def compile_lock(job: LockJob) -> str:
    """The text of a lock.

    Raises:
        PrerequisiteError: the requirements cannot be resolved, or no index answers.
    """
    backend = torch_backend("\n".join(job.requirements), job.target.stem, job.python)
    # A partial mirror lists fewer files, and a lock needs the hashes of all; a folder of CPU wheels is for CPU locks.
    hidden = ["UV_EXTRA_INDEX_URL"] if job.on_cpu else ["UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"]
    text = _resolve(job.requirements, job, [*backend, *(["--universal"] if job.universal else [])], hidden)
    if job.on_cpu and not any("+cpu" in word for word in job.requirements):
        text = split_torch(text, _public_torch(text, job))
    head = f"# Compiled by {job.made_by}, for Python {job.python}; do not edit.\n"
    return f"{head}# inputs sha256: {job.digest}\n{text}"


def _resolve(requirements: Sequence[str], job: LockJob, options: Sequence[str], without: Sequence[str]) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "wanted.in").write_text("\n".join(requirements), encoding="utf-8")
        (folder / "left_out.in").write_text("\n".join(job.left_out), encoding="utf-8")
        (folder / "overrides.in").write_text("\n".join(job.overrides), encoding="utf-8")
        if job.target.exists():  # uv keeps the versions that it finds where it is to write
            shutil.copyfile(job.target, folder / "lock.txt")
        quiet = ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links", "--generate-hashes"]
        words = ["wanted.in", "--excludes", "left_out.in", "--overrides", "overrides.in", "--output-file", "lock.txt"]
        command = ["pip", "compile", *words, "--python-version", job.python, *quiet, *options]
        run_uv(command, mute, folder, without=without)
        return (folder / "lock.txt").read_text(encoding="utf-8")


def _public_torch(text: str, job: LockJob) -> str:
    """The lock of the torch that is not a CPU build, in the version that `text` has as one; empty where it has none."""
    entry = CPU_TORCH.search(text)
    hidden = ["UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"]
    return _resolve([f"torch=={entry['version']}"], job, ["--no-deps"], hidden) if entry else ""


def split_torch(text: str, public: str) -> str:
    """Write `torch==X+cpu` for Linux alone, and `torch==X`, the public files, for the systems whose public files are
    CPU builds. uv checks a hash only against the very version that the lock writes, so one line cannot serve both.

    Args:
        text: a lock; unchanged where it has no CPU build of torch.
        public: a lock that names the public files of the same version.
    """
    entry = CPU_TORCH.search(text)
    if entry is None:
        return text
    version = entry["version"]
    built = [f"torch=={version}+cpu ; sys_platform == 'linux'", *_hash_lines(entry["rest"])]
    published = [f"torch=={version} ; sys_platform != 'linux'", *_hash_lines(public)]
    return text.replace(entry[0], "".join(" \\\n".join(lines) + "\n" for lines in (published, built)))


def _hash_lines(text: str) -> list[str]:
    return [f"    --hash={value}" for value in sorted(set(HASH.findall(text)))]


def write_lock(job: LockJob) -> bool:
    """Compile a lock and write it where it belongs; whether that changed it.

    Raises:
        PrerequisiteError: the requirements cannot be resolved, or no index answers.
    """
    before = job.target.read_text(encoding="utf-8") if job.target.exists() else None
    text = compile_lock(job)
    job.target.parent.mkdir(parents=True, exist_ok=True)
    job.target.write_text(text, encoding="utf-8")
    return text != before


def main() -> None:
    """Compile every lock, or those named on the command line, and say which changed."""
    wanted = sys.argv[1:]
    for job in lock_jobs():
        name = str(job.target.relative_to(ROOT))
        if not wanted or name in wanted:
            sys.stdout.write(f"{name}: {'changed' if write_lock(job) else 'unchanged'}\n")


if __name__ == "__main__":
    main()
