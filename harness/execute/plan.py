"""What a run will do: its cells in the order in which they will run, and the key that says when two are the same."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.execute.adapter import Adapter, find_adapter
from harness.execute.cell import Cell, cell_name
from harness.execute.compose import Choice, Config
from harness.execute.version import Version

SOURCE_ROOMS = ("contract", "probe", "task", "execute")
UNKEYED = ("repeats", "output", "price", "null_test", "launcher")
"""Settings that decide nothing of what a cell does."""


@dataclass(frozen=True)
class PlannedCell:
    """A cell before it has a folder. `key` is the hash of config, lock, adapter and harness: equal keys, equal work.

    Attributes:
        system: the file of `conf/adapter` that it is of; `file@version` where two versions of it are compared.
        label: what reports call it: `system`, or `system+fault` where a drill disturbs it.
        version: what it runs where that is not this checkout's pin.
        twin: the id of the undisturbed cell with the same seed; its own where nothing disturbs it.
        made_of: hashes of what the key holds beside the configuration: `lock`, `adapter` and `harness`.
    """

    cell_id: str
    adapter: Adapter
    system: str
    label: str
    twin: str
    lock: Path | None
    config: Config
    repeat: int
    key: str
    version: Version | None = None
    made_of: dict[str, str | None] = field(default_factory=dict)


def digest(*parts: Any) -> str:
    """A SHA-256 over JSON-able parts."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def source_hash(folders: Iterable[Path]) -> str:
    """A hash over the names and bytes of all source files below some folders."""
    total = hashlib.sha256()
    for folder in folders:
        for path in sorted(p for p in folder.rglob("*") if p.suffix in {".py", ".yaml", ".txt", ".j2"}):
            total.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def harness_hash() -> str:
    """The source of what runs a cell; a change of the report or the measures does not redo a cell."""
    root = Path(__file__).resolve().parents[1]
    return source_hash(root / room for room in SOURCE_ROOMS)


def plan_cells(choices: Sequence[Choice]) -> list[PlannedCell]:
    """All cells of a run in their order: block by block, each block in the reverse order of the one before (A B B A),
    so that a drift of the machine falls on all alike."""
    planned: list[PlannedCell] = []
    harness = harness_hash()
    for repeat in range(choices[0].config["repeats"]):
        planned += turned([plan_cell(choice, repeat, harness) for choice in choices], repeat)
    return planned


def turned(block: list[PlannedCell], number: int) -> list[PlannedCell]:
    """A block of cells in the order in which it runs as the `number`-th."""
    return block if number % 2 == 0 else block[::-1]


def plan_cell(choice: Choice, repeat: int, harness: str) -> PlannedCell:
    """One repeat of a choice; `harness` is `harness_hash()`."""
    config = {key: value for key, value in choice.config.items() if key != "launcher"}  # the same work
    adapter = find_adapter(config["adapter"]["name"])
    version, own = choice.version, adapter.lock(variant_of(config))
    lock = version.lock if version else own
    place = config["layout"]["name"], config["track"]["name"], repeat
    name, twin = cell_name(choice.label, *place), cell_name(choice.system, *place)
    lock_hash = hashlib.sha256(lock.read_bytes()).hexdigest() if lock and lock.exists() else None
    sources = source_hash([adapter.folder, *([version.source] if version and version.source else [])])
    made_of = {"lock": lock_hash, "adapter": sources, "harness": harness}
    key = digest(keyed(config), repeat, *made_of.values())
    return PlannedCell(name, adapter, choice.system, choice.label, twin, lock, config, repeat, key, version, made_of)


def keyed(config: Config) -> Config:
    """The settings that decide what a cell does."""
    return {key: value for key, value in config.items() if key not in UNKEYED}


def variant_of(config: Config) -> str:
    """The profile of the adapter whose lock a configuration asks for, e.g. `cpu` or `cpu_vllm`."""
    return str(config["adapter"].get("lock", config["profile"]["name"]))


def cell_of(planned: PlannedCell, run_id: str, folder: Path, bundle: Path | None) -> Cell:
    """What the process of a planned cell receives.

    Args:
        folder: its directory.
        bundle: the folder of the bundle; None for an adapter that needs none, or where only the driver is asked.
    """
    config = planned.config
    return Cell(
        run_id=f"{run_id}/{planned.cell_id}",
        cell_id=planned.cell_id,
        adapter=planned.label,
        package=planned.adapter.package,
        layout=config["layout"],
        track=config["track"]["name"],
        repeat=planned.repeat,
        seed=config["seed"] + planned.repeat,
        observer=config["observer"],
        bundle=str(bundle or ""),
        directory=str(folder.resolve()),
        attempt=0,
        fault=config["fault"],
        profile=config["profile"],
        model=config["model"],
        adapter_options=config["adapter"],
        task=config["task"],
    )


def plan_hash(cells: Iterable[tuple[str, str]]) -> str:
    """One hash over the ids and keys of all cells of a run, by which it is found again when it was interrupted."""
    return digest(sorted(set(cells)))
