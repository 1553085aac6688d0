"""Run folders for the tests: lawful ledgers of one optimizer step, and the manifest that a runner would write."""

import json
from pathlib import Path
from typing import Any

from harness.contract import LedgerWriter, compact
from tests.ledgers import write_lawful

TASK = {
    "name": "arithmetic",
    "steps": 1,
    "warmup_steps": 0,
    "prompts_per_batch": 2,
    "group_size": 2,
    "max_tokens": 8,
    "minibatches": 1,
    "micro_batches": 1,
    "inner_epochs": 1,
}
NOTES = {
    "settings": TASK,
    "versions": {"torch": "2.13.0"},
    "trainer_models": ["temperature"],
    "model": {"parameters": 1000, "trainable": 1000, "bytes": 4000, "flops_per_token": 2000},
    "engine": "none",
    "absent_stages": {"weight_sync": "weights are shared"},
    "device_count": 1,
    "finished": True,
}
AXES = {
    "placement": {"declared": "colocated", "source": "adapters/fake/loop.py", "date": "2026-11-29"},
    "synchrony": {"declared": "asynchronous", "source": "adapters/fake/loop.py", "date": "2026-11-29"},
}


def cell(
    adapter: str, repeat: int = 0, status: str = "ok", cause: str | None = None, reason: str | None = None
) -> dict[str, Any]:
    exact = {"setting": "group_size", "asked": 2, "in_force": 2, "grade": "exact", "note": ""}
    return {
        "cell_id": f"{adapter}.colocated_sync.free.r{repeat}",
        "adapter": adapter,
        "system": adapter,
        "fault": "none",
        "twin": f"{adapter}.colocated_sync.free.r{repeat}",
        "attempts": [],
        "faults_acted": 0,
        "layout": "colocated_sync",
        "track": "free",
        "repeat": repeat,
        "key": "00",
        "status": status,
        "cause": cause,
        "reason": reason,
        "wall_s": None if status == "not_run" else 1.5,
        "started": "2026-11-29T10:15:01+00:00",
        "load_before": [0.1, 0.1, 0.1],
        "load_after": [0.2, 0.1, 0.1],
        "fidelity": [exact] if status == "ok" else [],
        "peak_bytes": None,
        "result": {"note": "/home/someone/secret"},
    }


def manifest(
    cells: list[dict[str, Any]], adapters: tuple[str, ...] = ("reference", "trl"), **changes: Any
) -> dict[str, Any]:
    resolved = {
        "task": TASK,
        "model": {"name": "tiny"},
        "layout": {"name": "colocated_sync"},
        "track": {"name": "free"},
        "profile": {"name": "cpu"},
        "price": {"amount": None},
        "adapter": {},
        "repeats": max((c["repeat"] + 1 for c in cells), default=1),
        "output": "/home/someone/runs",
    }
    facts = {"title": "A loop", "version": "1.0", "sources": [], "capabilities": {}, "axes": AXES}
    native = [{"key": "loss", "definition": "its loss", "measure": "loss", "differs_because": "the same"}]
    content: dict[str, Any] = {
        "schema": 1,
        "run_id": "2026-11-29-101500-ab12",
        "created": "2026-11-29T10:15:00+00:00",
        "finished": "2026-11-29T10:16:00+00:00",
        "plan_hash": "00",
        "rlaxes": {"version": "0.1.0", "commit": "0123456789abcdef", "dirty": False},
        "machine": {
            "system": "Linux",
            "release": "6",
            "architecture": "x86_64",
            "cpu_model": "Example",
            "cores": 2,
            "memory_bytes": 2**34,
            "python": "3.11.7",
            "gpus": [],
        },
        "load": {"before": [0.1, 0.1, 0.1], "after": [0.5, 0.1, 0.1]},
        "profile": "cpu",
        "configs": {f"{name}.colocated_sync.free": {"hash": "77aa", "resolved": resolved} for name in adapters},
        "adapters": {name: {"name": name, **facts, "native": native} for name in adapters},
        "bundle": {},
        "roofline": None,
        "locks": {},
        "start_order": [c["cell_id"] for c in cells],
        "torn": [],
        "cells": cells,
    }
    return content | changes


def write_ledger(run: Path, cell_id: str, **rollout_changes: Any) -> None:
    streams = run / "cells" / cell_id / "streams"
    with LedgerWriter(streams, "main", f"run/{cell_id}") as writer:
        write_lawful(writer, **rollout_changes)
        writer.write("manifest", [{"key": key, "value": json.dumps(value)} for key, value in NOTES.items()])
    compact(streams, run / "ledger", cell_id)


def make_run(folder: Path, cells: list[dict[str, Any]], rollout: dict[str, Any] | None = None, **changes: Any) -> Path:
    """A run folder with a ledger for every cell that ended well."""
    content = manifest(cells, **changes)
    run: Path = folder / content["run_id"]
    run.mkdir(parents=True)
    (run / "manifest.json").write_text(json.dumps(content), encoding="utf-8")
    for row in cells:
        if row["status"] == "ok":
            write_ledger(run, row["cell_id"], **(rollout or {}))
    return run
