"""What has to be there before the first cell: environments, the bundle, and the measured limits of the machine."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import PrerequisiteError, UserError
from harness.execute.adapter import find_adapter, import_folder
from harness.execute.environments import cache_folder, ensure_environment
from harness.execute.launch import child_environment
from harness.execute.plan import PlannedCell
from harness.task.build import build_bundle

Say = Callable[[str], None]
INSTRUMENT = "reference"
"""The adapter in whose environment bundles are built and the machine's limits are measured."""
ROOFLINE_SECONDS = 300


@dataclass
class Prepared:
    """Interpreters by lock, why one could not be made, the bundle, and the limits of the machine."""

    bundle: Path | None = None
    bundle_facts: dict[str, Any] = field(default_factory=dict)
    roofline: dict[str, Any] | None = None
    interpreters: dict[Path, Path] = field(default_factory=dict)
    locks: dict[str, str] = field(default_factory=dict)
    failures: dict[Path, str] = field(default_factory=dict)

    def python(self, cell: PlannedCell) -> Path:
        """The interpreter of a cell.

        Raises:
            PrerequisiteError: its environment could not be made.
        """
        if cell.lock is None:
            return Path(sys.executable)
        if cell.lock in self.failures:
            raise PrerequisiteError(self.failures[cell.lock])
        return self.interpreters[cell.lock]


def prepare(cells: Sequence[PlannedCell], scratch: Path, say: Say) -> Prepared:
    """Make the environments of all cells (one that fails costs its own cells only), the bundle, and the limits.

    Args:
        scratch: a folder of this run, for the links that a process in an environment imports through.

    Raises:
        UserError: the model or task of the bundle is not to be had as configured.
        PrerequisiteError: the environment that builds the bundle cannot be made.
    """
    prepared = Prepared()
    for cell in _one_per_lock(cells):
        _environment(cell, prepared, say)
    if any(cell.adapter.spec.get("needs_bundle", True) for cell in cells):
        instrument = _instrument(prepared, say)
        config = cells[0].config
        bundle = build_bundle(config["task"], config["model"], cache_folder(), instrument, say)
        prepared.bundle = bundle.path
        prepared.bundle_facts = bundle.facts
        prepared.roofline = measure_roofline(instrument, config, scratch, say)
    return prepared


def sync_environments(cells: Sequence[PlannedCell], say: Say) -> dict[str, str]:
    """Make the environments of all cells; the interpreter by the name of the environment.

    Raises:
        PrerequisiteError: one of them cannot be made.
    """
    made = {}
    for cell in _one_per_lock(cells):
        if cell.lock is not None:
            environment = ensure_environment(cell.adapter.name, cell.lock, cell.adapter.spec["python"], say)
            made[environment.name] = str(environment.python)
    return made


def _one_per_lock(cells: Sequence[PlannedCell]) -> list[PlannedCell]:
    return list({cell.lock: cell for cell in cells if cell.lock}.values())


def _environment(cell: PlannedCell, prepared: Prepared, say: Say) -> None:
    lock = cell.lock
    if lock is None:
        return
    try:
        environment = ensure_environment(cell.adapter.name, lock, cell.adapter.spec["python"], say)
    except (PrerequisiteError, UserError) as error:
        say(f"environment of {cell.adapter.name} could not be made: {error}")
        prepared.failures[lock] = str(error)
        return
    prepared.interpreters[lock] = environment.python
    prepared.locks[cell.system] = environment.lock_hash


def _instrument(prepared: Prepared, say: Say) -> Path:
    adapter = find_adapter(INSTRUMENT)
    lock = adapter.lock("cpu")
    if lock is None:
        raise PrerequisiteError(f"adapter {INSTRUMENT} has no lock for the profile cpu")
    if lock not in prepared.interpreters:
        prepared.interpreters[lock] = ensure_environment(adapter.name, lock, adapter.spec["python"], say).python
    return prepared.interpreters[lock]


def measure_roofline(python: Path, config: dict[str, Any], scratch: Path, say: Say) -> dict[str, Any] | None:
    """Bandwidth and matrix rate of this machine, now (see `harness.probe.roofline`); None where that failed, which
    costs the run its headroom and nothing else."""
    say("measuring the memory bandwidth and the matrix rate of this machine")
    threads, precision = config["profile"]["threads"], config["task"]["precision"]
    imports = import_folder(find_adapter(INSTRUMENT), scratch / "imports")
    env = child_environment(imports, Path("none"), {}, threads)
    argv = [str(python), "-m", "harness.probe.roofline", str(threads), precision]
    try:
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=ROOFLINE_SECONDS)
    except subprocess.SubprocessError as error:
        say(f"the limits of this machine could not be measured: {error}")
        return None
    return dict(json.loads(done.stdout))
