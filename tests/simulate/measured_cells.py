"""Run folders of a synchronous cell whose stages took what a test says."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.contract import LedgerWriter, compact
from tests.ledgers import rollout, span

GROUPS, SIZE = 2, 2
LABEL = "reference.disaggregated_sync.free"
TIMES = {
    "prompt_prep": 2,
    "prefill": 20,
    "decode": 30,
    "verifier": 5,
    "collect": 3,
    "forward_backward": 80,
    "optimizer_step": 10,
    "weight_sync": 15,
}
"""Milliseconds of a batch's stages, in their order."""
GAPS = {"prefill": 1, "verifier": 4, "collect": 2, "forward_backward": 6, "weight_sync": 7}
"""Milliseconds between processes before a stage."""
PROCESS = {"prefill": "rollout-0", "decode": "rollout-0", "verifier": "verifier-0"}
PROCESS |= dict.fromkeys(("forward_backward", "optimizer_step"), "trainer-0")
MS = 1_000_000
LENGTHS = (4, 4, 4, 4)


def times(**changes: float) -> list[dict[str, float]]:
    """Six batches that take the same."""
    return [TIMES | changes for _ in range(6)]


def write_run(
    folder: Path,
    batches: Sequence[Mapping[str, float]],
    *,
    lengths: Sequence[Sequence[int]] | None = None,
    device: str = "cuda",
    cores: int = 2,
    repeats: int = 1,
    layout: Mapping[str, Any] | None = None,
    **manifest: Any,
) -> Path:
    """A run folder with the ledger of each repeat."""
    of_batch = lengths or [LENGTHS] * len(batches)
    cells = [f"{LABEL}.r{number}" for number in range(repeats)]
    for cell in cells:
        _write_ledger(folder, cell, batches, of_batch)
    placed = {"placement": "disaggregated", "synchrony": "synchronous", "lag_bound": 0} | dict(layout or {})
    resolved = {
        "layout": placed | {"name": f"{placed['placement']}_sync"},
        "task": {"prompts_per_batch": GROUPS, "group_size": SIZE, "minibatches": 1, "inner_epochs": 1}
        | {"warmup_steps": 1, "verifier_timeout_s": 5.0},
        "profile": {"device": device},
        "adapter": {"name": "reference", "queue": {}, "pools": {"rollout_threads": 1, "trainer_threads": 1}},
    }
    rows = [{"cell_id": cell, "status": "ok", "system": "reference"} for cell in cells]
    content = {"run_id": folder.name, "cells": rows, "configs": {LABEL: {"resolved": resolved}}}
    (folder / "manifest.json").write_text(json.dumps(content | {"machine": {"cores": cores}} | manifest))
    return folder


def _write_ledger(
    folder: Path, cell: str, batches: Sequence[Mapping[str, float]], lengths: Sequence[Sequence[int]]
) -> None:
    streams = folder / "streams" / cell
    names = ["main", *sorted(set(PROCESS.values()))]
    writers = {name: LedgerWriter(streams, name, "run/cell") for name in names}
    at = 0.0
    for number, (stages, sizes) in enumerate(zip(batches, lengths, strict=True)):
        trace, begun = f"gen-{number}", at
        for stage, taken in stages.items():
            at += GAPS.get(stage, 0)
            named = "batch_assembly" if stage == "collect" else stage
            row = span(named, round(at * MS), round((at + taken) * MS), trace_id=trace, step=number)
            writers[PROCESS.get(stage, "main")].write("spans", [row])
            at += taken
        writers["main"].accept_batch(_completions(number, trace, sizes))
        update = {
            "step": number,
            "batch_id": trace,
            "policy_version_before": number,
            "policy_version_after": number + 1,
        }
        ends = {"t_start": round(begun * MS), "t_end": round(at * MS), "applied": True}
        counts = {"records": len(sizes), "groups": GROUPS, "policy_tokens": sum(sizes), "padded_tokens": 0}
        writers["main"].write("updates", [update | ends | counts])
    for writer in writers.values():
        writer.close()
    compact(streams, folder / "ledger", cell)


def _completions(batch: int, trace: str, sizes: Sequence[int]) -> list[dict[str, Any]]:
    rows = []
    for place, size in enumerate(sizes):
        group = f"p{place // SIZE}.b{batch}"
        made = {
            "response_tokens": [7] * size,
            "policy_mask": [0, 0, 0] + [1] * size,
            "behavior_logprobs": [-1.0] * size,
        }
        ids = {"group_id": group, "sample_id": f"{group}.g{place % SIZE}", "trace_id": trace}
        rows.append(rollout(place, **ids, **made))
    return rows
