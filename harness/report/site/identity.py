"""What tells two published runs apart: the facts that the page which compares two dates holds against each other."""

from collections.abc import Iterator, Mapping
from typing import Any

from harness.report import format as fmt
from harness.report.site.reading import Run

NOT_THE_WORK = ("output", "repeats", "price", "null_test")
"""Settings that change where a run is kept, how often it is repeated or what it costs, and not what is done."""
MACHINE = {"id": "identity", "cpu_model": "processor", "cores": "cores", "memory_bytes": "memory", "gpus": "GPUs"}
MACHINE |= {"architecture": "architecture", "system": "system"}
SURROUNDINGS = {"release": "kernel", "python": "Python"}

Facts = dict[str, str]


def identity_of(run: Run) -> dict[str, Any]:
    """Facts as words, by group. Where a fact of `machine`, or of a column's `settings`, differs, the values of two runs
    are of two things; the other groups (`systems`, `code`, `moment`) are named and bar nothing."""
    machine = run.manifest.get("machine") or {}
    return {
        "systems": dict(_systems(run)),
        "code": _code(run.manifest.get("rlaxes") or {}),
        "machine": _named(machine, MACHINE),
        "moment": _named(machine, SURROUNDINGS) | dict(_moment(run)),
        "settings": {label: _settings(config) for label, config in (run.manifest.get("configs") or {}).items()},
    }


def _named(facts: Mapping[str, Any], names: Mapping[str, str]) -> Facts:
    return {title: _said(key, facts[key]) for key, title in names.items() if facts.get(key) is not None}


def _said(key: str, value: Any) -> str:
    if key == "memory_bytes":
        return fmt.quantity(value, "bytes")
    if key == "gpus":
        return "; ".join(f"{gpu['name']}, {fmt.quantity(gpu['memory_bytes'], 'bytes')}" for gpu in value) or "none"
    return fmt.setting(value)


def _systems(run: Run) -> Iterator[tuple[str, str]]:
    locks = run.manifest.get("locks") or {}
    for name, facts in sorted(run.model.adapters.items()):
        yield f"{name}, version", str(facts.get("version") or "not told")
        if lock := locks.get(name):
            yield f"{name}, lock", str(lock)[:12]


def _code(rlaxes: Mapping[str, Any]) -> Facts:
    dirty = {True: "yes", False: "no", None: "not told"}[rlaxes.get("dirty")]
    commit = str(rlaxes.get("commit") or "not told")[:12]
    return {"rlaxes": str(rlaxes.get("version", "not told")), "commit": commit, "uncommitted changes": dirty}


def _moment(run: Run) -> Iterator[tuple[str, str]]:
    load = run.manifest.get("load") or {}
    for when in ("before", "after"):
        if load.get(when):
            yield f"load {when}", f"{load[when][0]:g}"
    roofline = run.manifest.get("roofline") or {}
    if roofline:
        yield "memory bandwidth, measured", fmt.quantity(roofline["bandwidth_bytes_per_s"], "bytes/s")
        yield "matrix rate, measured", f"{fmt.number(roofline['matrix_flops_per_s'] / 1e9)} GFLOP/s"


def _settings(config: Mapping[str, Any]) -> Facts:
    recipe = (config.get("recipe") or {}).get("name")
    settings = {key: value for key, value in config["resolved"].items() if key not in NOT_THE_WORK}
    return dict(_flat(settings)) | ({"recipe": str(recipe)} if recipe else {})


def _flat(settings: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for key, value in sorted(settings.items()):
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", fmt.setting(value)
