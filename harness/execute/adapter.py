"""Finds adapters (this repository's, and anyone's through the entry-point group) and loads their drivers."""

import importlib
import importlib.metadata
import importlib.util
import json
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import yaml

from harness.contract.axes import complaint_of
from harness.errors import UserError
from harness.execute.cell import Cell

ENTRY_POINTS = "rlaxes.adapters"
BUILT_IN = "adapters"
SPEC = "adapter.yaml"
DRIVERS = ("driver.py", "driver/__init__.py")
MAPPED = "read and mapped, not run: it has no driver"
NEEDED = ("name", "title", "version", "pinned", "python", "profiles", "layouts", "axes")
"""What every `adapter.yaml` says."""


@dataclass(frozen=True)
class Launch:
    """How to start a cell: `argv` (its first word `python` stands for the environment's interpreter), variables to
    add to the environment, and files to write, relative to the cell's directory."""

    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Fidelity:
    """What one task setting became: what was asked, what is in force, and how near that is."""

    setting: str
    asked: Any
    in_force: Any
    grade: Literal["exact", "approximated", "unsupported"]
    note: str = ""


class Driver(Protocol):
    """The harness side of an adapter; it imports no framework."""

    def render(self, cell: Cell) -> Launch:
        """The files and the command of a cell."""
        ...

    def skip(self, cell: Cell) -> str | None:
        """Why this cell cannot run here, or None."""
        ...

    def fidelity(self, cell: Cell, settings_in_force: dict[str, Any]) -> list[Fidelity]:
        """One row for each task setting, with the value that the framework's own objects held."""
        ...

    def native(self, cell_dir: Path) -> list[tuple[int | None, str, float]]:
        """The framework's own figures: (optimizer step or None, key, value)."""
        ...


@dataclass(frozen=True)
class Adapter:
    """An adapter as found: its package, its folder, and the content of its `adapter.yaml`."""

    name: str
    package: str
    folder: Path
    spec: dict[str, Any]

    @property
    def built_in(self) -> bool:
        """Whether it is one of rlaxes' own, and not a third party's."""
        return self.package.startswith(f"{BUILT_IN}.")

    @property
    def runs(self) -> bool:
        """Whether it has a driver. One without is known, its logs are read and its axes mapped, but it is not run."""
        return any((self.folder / name).exists() for name in DRIVERS)

    @property
    def driver(self) -> Driver:
        """The adapter's driver, imported when first asked for.

        Raises:
            UserError: a third party's cannot be imported.
        """
        try:
            return cast(Driver, importlib.import_module(f"{self.package}.driver").driver)
        except (ImportError, AttributeError) as error:
            if self.built_in:
                raise
            raise UserError(f"the driver of adapter {self.name} cannot be imported: {error}") from error

    def lock(self, profile: str) -> Path | None:
        """The requirement lock of a profile; None where the adapter runs in the harness's own interpreter.

        Raises:
            UserError: the adapter has no such profile.
        """
        profiles = self.spec["profiles"]
        if profile not in profiles:
            raise UserError(f"adapter {self.name} has no profile {profile}; it has {', '.join(sorted(profiles))}")
        lock = profiles[profile].get("lock")
        return self.folder / lock if lock else None


def _package_folder(package: str) -> Path:
    try:
        spec = importlib.util.find_spec(package)
    except ImportError as error:
        raise UserError(f"package {package} cannot be found: {error}") from error
    if spec is None or not spec.submodule_search_locations:
        raise UserError(f"there is no package {package}")
    return Path(next(iter(spec.submodule_search_locations)))


def _read(package: str, folder: Path) -> Adapter:
    """The adapter of a package.

    Raises:
        UserError: its `adapter.yaml` is missing, is no YAML, lacks an entry, or declares on an axis what does not load.
    """
    path = folder / SPEC
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise UserError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    missing = [key for key in NEEDED if key not in content] if isinstance(content, dict) else list(NEEDED)
    if missing:
        raise UserError(f"{path} says nothing of {', '.join(missing)}")
    spec = json.loads(json.dumps(content, default=str))  # YAML makes dates of dates, which a manifest cannot hold
    if complaint := complaint_of(spec["axes"]):
        raise UserError(f"{path}: {complaint}")
    return Adapter(spec["name"], package, folder, spec)


@dataclass(frozen=True)
class Found:
    """The adapters by name, and why an installed one is none of them."""

    adapters: dict[str, Adapter]
    broken: dict[str, str]


@cache
def look_for_adapters() -> Found:
    """The folders of this repository with an `adapter.yaml`, and installed entry points. One that is broken costs no
    other its place."""
    root = _package_folder(BUILT_IN)
    own = [_read(f"{BUILT_IN}.{path.parent.name}", path.parent) for path in sorted(root.glob(f"*/{SPEC}"))]
    found, broken = {adapter.name: adapter for adapter in own}, dict[str, str]()
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        try:
            adapter = _read(entry.value, _package_folder(entry.value))
        except UserError as error:
            broken[entry.name] = str(error)
            continue
        if adapter.name != entry.name:
            broken[entry.name] = f"its {SPEC} calls it {adapter.name}"
        elif adapter.name in found:
            broken[entry.name] = f"the package {found[adapter.name].package} has an adapter of that name already"
        else:
            found[adapter.name] = adapter
    return Found(found, broken)


def find_adapters() -> dict[str, Adapter]:
    """Every adapter by name."""
    return look_for_adapters().adapters


def find_adapter(name: str) -> Adapter:
    """The adapter of that name.

    Raises:
        UserError: there is none, or an installed one is broken.
    """
    found = look_for_adapters()
    if name in found.adapters:
        return found.adapters[name]
    if name in found.broken:
        raise UserError(f"the installed adapter {name} cannot be used: {found.broken[name]}")
    raise UserError(f"no adapter {name}; there are {', '.join(sorted(found.adapters))}")


def not_run(adapter: Adapter) -> str:
    """What is said of an adapter without a driver to somebody who wants to run it."""
    return f"adapter {adapter.name} is {MAPPED} (`rlaxes axes {adapter.name}`, `rlaxes ingest` of its logs)"


def import_folder(adapter: Adapter, target: Path, source: Path | None = None) -> Path:
    """Fill `target` with links to the top-level packages that the cell's process needs, to be its `PYTHONPATH`; those
    below `source` where that is given.

    Links, and not the folder that holds them: in an installed rlaxes that folder is the harness's site-packages, and
    everything in it would shadow the framework's own environment.
    """
    target.mkdir(parents=True, exist_ok=True)
    for package in {"harness", BUILT_IN, adapter.package.split(".")[0]}:
        link = target / package
        with suppress(FileExistsError):  # by an earlier cell, or by a job beside this one
            link.symlink_to(source / package if source else _package_folder(package), target_is_directory=True)
    return target
