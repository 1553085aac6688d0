"""`rlaxes doctor`: what is missing or has drifted, each with what mends it."""

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from harness.errors import SystemFailure, UserError
from harness.execute.adapter import MAPPED, Adapter, find_adapter, find_adapters, look_for_adapters
from harness.execute.compose import CONF
from harness.execute.environment_diff import diff_environment
from harness.execute.environments import cache_folder, environment_name, environments_folder, find_environment
from harness.execute.hook_check import hook_drift
from harness.execute.locks import (
    EXPORT,
    EXPORT_LOCK,
    EXPORT_PYTHON,
    PROJECT_FILE,
    adapter_job,
    export_job,
    harness_job,
    read_project,
)
from harness.execute.machine import load, usable_cores
from harness.execute.requirement_lock import inputs_digest

LEAST_FREE_BYTES = 6 * 2**30


@dataclass(frozen=True)
class Check:
    """One thing looked at: whether it is in order, what was seen, and what mends it."""

    name: str
    ok: bool
    detail: str
    mend: str = ""


def diagnose(adapter: str | None, profile: str) -> list[Check]:
    """Every check of the machine, and of one adapter (or of all that have the profile).

    Raises:
        UserError: there is no such adapter or profile.
    """
    chosen = [find_adapter(adapter)] if adapter else list(find_adapters().values())
    checks = list(_machine(profile))
    for found in chosen:
        checks += _adapter(found, profile)
    broken = {} if adapter else look_for_adapters().broken
    for name, why in broken.items():
        checks.append(Check(f"{name}: installed adapter", ok=False, detail=why, mend="mend or uninstall that package"))
    return checks


def _machine(profile: str) -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Check("python", sys.version_info >= (3, 11), version, "use Python 3.11 or newer")
    yield from _locks()
    yield _tools()
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    for name, path in (("disk of the cache", folder), ("disk of the runs", Path.cwd())):
        free = shutil.disk_usage(path).free
        detail = f"{free / 2**30:.1f} GiB free"
        yield Check(
            name, free >= LEAST_FREE_BYTES, detail, f"free {LEAST_FREE_BYTES / 2**30:.0f} GiB or set RLAXES_CACHE"
        )
    cores, wanted = usable_cores(), _threads(profile)
    mend = f"run with profile.threads={cores}"
    yield Check("threads", wanted <= cores, f"{wanted} wanted by the profile, {cores} cores usable", mend)
    one_minute = load()[0]
    busy = ": timings want a quiet machine, end other work first" if one_minute >= cores else ""
    threads = os.environ.get("OMP_NUM_THREADS", "not set")
    # Not a failure: it passes by itself, and every run writes its own load down.
    yield Check("load", ok=True, detail=f"load average {one_minute} on {cores} cores; OMP_NUM_THREADS={threads}{busy}")


def _locks() -> Iterator[Check]:
    if PROJECT_FILE.exists():
        content = read_project()
        for name, job in (("harness", harness_job(content)), ("tools of an export", export_job(content))):
            text = job.target.read_text(encoding="utf-8") if job.target.exists() else ""
            fresh = inputs_digest(text) == job.digest
            detail = (
                "compiled from pyproject.toml as it is" if fresh else "pyproject.toml has changed since it was compiled"
            )
            yield Check(f"lock of the {name}", fresh, detail, "make locks")


def _tools() -> Check:
    """What `rlaxes export` writes for MLflow, trackio and W&B with; not to have it yet is no fault."""
    label, found = "environment of an export", find_environment(EXPORT, EXPORT_LOCK, EXPORT_PYTHON)
    if found is None:
        return Check(label, ok=True, detail="not made: the first export to mlflow, trackio or wandb makes it")
    differing = diff_environment(found)
    size = f"{found.name}, {found.packages} packages, {found.size_bytes / 2**30:.1f} GiB"
    mend = f"rlaxes env remove {found.name} && rlaxes env sync --tools"
    return Check(label, not differing, "; ".join(differing) or size, mend)


def _threads(profile: str) -> int:
    folder = CONF / "profile"
    known = sorted(file.stem for file in folder.glob("*.yaml"))
    if profile not in known:
        raise UserError(f"no profile {profile}; there are {', '.join(known)}")
    return int(yaml.safe_load((folder / f"{profile}.yaml").read_text(encoding="utf-8"))["threads"])


def _adapter(adapter: Adapter, profile: str) -> Iterator[Check]:
    """Checks of every environment that the adapter may use under a profile: the profile's own, and its variants
    (`cpu_vllm` is one of `cpu`)."""
    if not adapter.runs:
        yield Check(f"{adapter.name}: driver", ok=True, detail=MAPPED)
        return
    if adapter.spec["profiles"].get(profile, {}).get("lock") is None and profile in adapter.spec["profiles"]:
        yield _hooks(adapter, Path(sys.executable), adapter.name)
        return
    names = [name for name in adapter.spec["profiles"] if name == profile or name.startswith(f"{profile}_")]
    if not names:
        yield Check(f"{adapter.name}: profile", ok=True, detail=f"has no profile {profile}: nothing to check")
    for name in names:
        yield from _environment(adapter, name, profile)


def _environment(adapter: Adapter, variant: str, profile: str) -> Iterator[Check]:
    lock = adapter.lock(variant)
    label = adapter.name if variant == profile else f"{adapter.name} ({variant})"
    if lock is None or not lock.exists():
        yield Check(f"{label}: lock", ok=False, detail=f"there is no {lock}", mend=_compile(adapter))
        return
    yield from _lock(adapter, variant, lock, label)
    python = adapter.spec["python"]
    name = environment_name(adapter.name, lock, python)
    environment = find_environment(adapter.name, lock, python)
    sync = f"rlaxes env sync adapter={_configuration(adapter, variant)} profile={profile}"
    if environment is None:
        half = "only half-made" if (environments_folder() / name).exists() else "not made"
        yield Check(f"{label}: environment", ok=False, detail=f"{name} is {half}", mend=sync)
        return
    size = f"{environment.packages} packages, {environment.size_bytes / 2**30:.1f} GiB"
    yield Check(f"{label}: environment", ok=True, detail=f"{name}, {size}")
    differing = diff_environment(environment)
    mend = f"rlaxes env remove {name} && {sync} (after `uv cache clean PACKAGE` for a package whose files differ)"
    yield Check(f"{label}: packages", not differing, "; ".join(differing) or "as the lock says", mend)
    yield _hooks(adapter, environment.python, label)


def _configuration(adapter: Adapter, variant: str) -> str:
    """The choice on the command line (a file of conf/adapter) that uses this environment."""
    for file in sorted((CONF / "adapter").glob("*.yaml")):
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        if content.get("name") == adapter.name and content.get("lock") == variant:
            return file.stem
    return adapter.name


def _compile(adapter: Adapter) -> str:
    return "make locks" if adapter.built_in else f"rlaxes env lock {adapter.name}"


def _lock(adapter: Adapter, variant: str, lock: Path, label: str) -> Iterator[Check]:
    """Whether a lock was compiled from what is asked for today, where that can be told."""
    if job := adapter_job(adapter, variant, read_project()):
        fresh = inputs_digest(lock.read_text(encoding="utf-8")) == job.digest
        asks = "pyproject.toml" if adapter.built_in else "adapter.yaml"
        detail = f"compiled from {asks} as it is" if fresh else f"{asks} has changed since it was compiled"
        yield Check(f"{label}: lock", fresh, detail, _compile(adapter))


def _hooks(adapter: Adapter, python: Path, label: str) -> Check:
    try:
        drift = hook_drift(adapter, python)
    except SystemFailure as error:
        return Check(f"{label}: hooks", ok=False, detail=str(error))
    mend = f"install the pinned version {adapter.spec['version']}, or move the adapter's hook points"
    return Check(f"{label}: hooks", not drift, "; ".join(drift) or "all there", mend)
