"""`rlaxes doctor`: what is missing or has drifted, each with what mends it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from harness.execute.adapter import Adapter, find_adapter, find_adapters, import_folder
from harness.execute.compose import CONF
from harness.execute.environments import (
    COMPLETE,
    Environment,
    cache_folder,
    diff_environment,
    environment_name,
    environments_folder,
    lock_hash,
)
from harness.execute.machine import load, usable_cores

LEAST_FREE_BYTES = 6 * 2**30
HOOK_SECONDS = 180


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
        UserError: there is no such adapter.
    """
    chosen = [find_adapter(adapter)] if adapter else list(find_adapters().values())
    checks = list(_machine(profile))
    for found in chosen:
        checks += _adapter(found, profile)
    return checks


def _machine(profile: str) -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Check("python", sys.version_info >= (3, 11), version, "use Python 3.11 or newer")
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
    busy = f"load average {one_minute} on {cores} cores; OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'not set')}"
    yield Check("load", one_minute < cores, busy, "timings want a quiet machine: end other work first")


def _threads(profile: str) -> int:
    content = yaml.safe_load((CONF / "profile" / f"{profile}.yaml").read_text(encoding="utf-8"))
    return int(content["threads"])


def _adapter(adapter: Adapter, profile: str) -> Iterator[Check]:
    if profile not in adapter.spec["profiles"]:
        yield Check(f"{adapter.name}: profile", ok=True, detail=f"has no profile {profile}: nothing to check")
        return
    lock = adapter.lock(profile)
    if lock is None:
        yield _hooks(adapter, Path(sys.executable))
        return
    python = adapter.spec["python"]
    name = environment_name(adapter.name, lock, python)
    path = environments_folder() / name
    made = (path / COMPLETE).exists()
    sync = f"rlaxes env sync adapter={adapter.name} profile={profile}"
    yield Check(f"{adapter.name}: environment", made, name if made else f"{name} is not made", sync)
    if made:
        environment = Environment(name, path / "bin" / "python", lock_hash(lock), path)
        differing = diff_environment(environment, lock)
        detail = "; ".join(differing) or "as the lock says"
        yield Check(f"{adapter.name}: lock", not differing, detail, f"rlaxes env remove {name} && {sync}")
        yield _hooks(adapter, environment.python)


def _hooks(adapter: Adapter, python: Path) -> Check:
    """Ask the adapter, inside its environment, whether every hook point still exists in the installed version."""
    imports = import_folder(adapter, cache_folder() / "doctor" / str(os.getpid()))
    try:
        done = subprocess.run(
            [str(python), "-m", f"{adapter.package}.inside", "--check-hooks"],
            env=os.environ | {"PYTHONPATH": str(imports)},
            capture_output=True,
            text=True,
            check=False,
            timeout=HOOK_SECONDS,
        )
        drift = json.loads(done.stdout.strip().splitlines()[-1])
    except (subprocess.TimeoutExpired, ValueError, IndexError) as error:
        return Check(f"{adapter.name}: hooks", ok=False, detail=f"the check itself failed: {error}")
    finally:
        for link in imports.iterdir():
            link.unlink()
        imports.rmdir()
    mend = f"install the pinned version {adapter.spec['version']}, or move the adapter's hook points"
    return Check(f"{adapter.name}: hooks", not drift, "; ".join(drift) or "all there", mend)
