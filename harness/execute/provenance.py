"""Which rlaxes this is, and what the adapters of a run declare: the parts of the manifest that hold for all cells."""

import importlib.metadata
import subprocess
from pathlib import Path
from typing import Any

from harness.execute.plan import PlannedCell, digest
from harness.execute.recipe import changed_options


def _git(*words: str) -> str | None:
    root = Path(__file__).resolve().parents[2]
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def rlaxes_version() -> dict[str, Any]:
    """Version, commit, and whether the checkout holds uncommitted changes; null where it is no checkout."""
    status = _git("status", "--porcelain")
    dirty = bool(status) if status is not None else None
    return {"version": importlib.metadata.version("rlaxes"), "commit": _git("rev-parse", "HEAD"), "dirty": dirty}


def adapter_facts(cells: list[PlannedCell]) -> dict[str, Any]:
    """For each system: the adapter's name, pin, declared axes, native figures, and sources. What is declared of the pin
    is not said of another version that the cells ran."""
    return {cell.system: _facts(cell) for cell in cells}


def _facts(cell: PlannedCell) -> dict[str, Any]:
    spec, ran = cell.adapter.spec, cell.version
    keys = ("title", "version", "pinned", "capabilities", "axes", "native", "sources")
    facts = {"name": cell.adapter.name, **{key: spec.get(key) for key in keys}}
    if ran is None or ran.release == str(spec["version"]):
        return facts | ({"tracked": ran.as_dict()} if ran else {})
    axes = {axis: {"version": spec["version"]} | said for axis, said in spec["axes"].items()}
    return facts | {"version": ran.release, "pinned": None, "axes": axes, "tracked": ran.as_dict()}


def configurations(cells: list[PlannedCell]) -> dict[str, Any]:
    """The resolved configuration of each adapter, fault, layout and track, with its hash and its recipe: who tuned it,
    and which of the adapter's options were `changed`."""
    found = {}
    for cell in cells:
        name, config = cell.cell_id.rsplit(".r", 1)[0], cell.config
        changed = changed_options(cell.system.partition("@")[0], config["adapter"])
        found[name] = {"hash": digest(config), "recipe": config["recipe"] | {"changed": changed}, "resolved": config}
    return found
