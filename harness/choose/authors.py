"""What authors published: of the tables that rlaxes holds, only how and on how many devices a row ran.

No figure of such a table is passed on: it was measured under another protocol (`harness.validate` says what adds up).
"""

from collections.abc import Iterator

from harness.choose.evidence import REPORTED, Finding
from harness.choose.topics import ASYNCHRONOUS
from harness.validate.table import Row, published

SOURCES = {
    "verl_async": "verl",
    "verl_off": "verl",
    "verl_dynamic": "verl",
    "skyrl": "skyrl",
    "nemo": "nemo_rl",
    "nemo_pr": "nemo_rl",
    "nemo_log": "nemo_rl",
    "prime": "prime_rl",
    "areal": "areal",
    "openrlhf": "openrlhf",
    "trl": "trl",
}
"""Whose a source of `published.yaml` is; those of others are not here."""
ONE_MACHINE = 8
"""Devices that one machine may hold: a row with more ran on several."""
MODES: dict[str, tuple[str, ...]] = {
    "sync": ("synchronous",),
    "on-policy": ("synchronous",),
    "one_step_off": ("one_step_off",),
    "fully_async": ("fully_asynchronous",),
    "1-off": ASYNCHRONOUS,
    "8-off": ASYNCHRONOUS,
}


def reported() -> Iterator[tuple[str, Finding]]:
    """Of each framework and mode the row with the most devices, and what was claimed of several machines."""
    content = published()
    most: dict[tuple[str, str, frozenset[str]], Row] = {}
    for row in (*content.stages.values(), *content.nemo):
        if row.source not in SOURCES or row.wrong:
            continue
        name = SOURCES[row.source]
        for axis, values in _shows(row):
            kept = most.get((name, axis, values))
            if kept is None or _devices(row) > _devices(kept):
                most[name, axis, values] = row
    for (name, axis, values), row in most.items():
        source = content.sources[row.source]
        devices = f"{_devices(row)} GPUs" if _devices(row) else "devices not told"
        says = f"a row of its published table: {_mode(row)}, {devices} ({row.name})"
        yield name, Finding(axis, values, REPORTED, says, source["where"], None, source["at"])
    for gain in (gain for gain in content.gains if gain.get("nodes", 1) > 1):
        source, says = content.sources[gain["source"]], f"a claim of its authors: {gain['id']}"
        values = frozenset({"many_nodes"})
        yield SOURCES[gain["source"]], Finding("nodes", values, REPORTED, says, source["where"], None, source["at"])


def _shows(row: Row) -> Iterator[tuple[str, frozenset[str]]]:
    mode = _mode(row)
    if mode in MODES:
        yield "synchrony", frozenset(MODES[mode])
    if _devices(row) > ONE_MACHINE:
        yield "nodes", frozenset({"many_nodes"})


def _mode(row: Row) -> str:
    return str(row.values.get("mode") or row.values.get("policy"))


def _devices(row: Row) -> int:
    return int(row.values.get("gpus") or 0)
