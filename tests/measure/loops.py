"""A hand-made synchronous loop: every figure of it can be worked out from the numbers at the top of this file.

One optimizer step takes 100 ms, the last 5 of which no span covers. Each generated batch has two groups of two.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.contract import CellLedger, LedgerWriter, compact, read_cell
from harness.measure.api import MeasureContext, measure_cell
from harness.measure.values import Value
from tests.ledgers import CELL_ID, rollout, span

MS = 1_000_000
START = 1_000 * MS
STEPS, WARMUP = 4, 1
STAGES = {
    "prompt_prep": (0, 5),
    "prefill": (5, 15),
    "decode": (15, 55),
    "verifier": (55, 65),
    "forward_backward": (65, 85),
    "optimizer_step": (85, 90),
    "weight_sync": (90, 95),
}
LENGTHS = (4, 2, 4, 6)
GENERATE_MS = (30, 20, 40, 50)
REWARDS: tuple[float | None, ...] = (0.0, 1.0, 1.0, 1.0)
TASK = {"group_size": 2, "prompts_per_batch": 2, "minibatches": 1, "inner_epochs": 1, "micro_batches": 2}
MODEL = {"parameters": 1000, "trainable": 1000, "bytes": 4000, "flops_per_token": 2000}
NOTES = {
    "window": {"t_start": START, "t_end": START + (100 * STEPS - 5) * MS},
    "trainer_models": ["temperature"],
    "model": MODEL,
    "device_count": 1,
    "absent_stages": {"logprob_recompute": "the trainer scores in its own forward pass"},
}
PRICE = {"amount": 3.6, "currency": "EUR", "per": "device_hour", "date": "2026-11-29", "source": "a test"}
ROOFLINE = {"bandwidth_bytes_per_s": 1e6, "matrix_flops_per_s": 4e6}


def at(step: int, ms: float) -> int:
    """A moment of a step, in ns."""
    return START + int((step * 100 + ms) * MS)


def rollouts(step: int, **changes: Any) -> list[dict[str, Any]]:
    """The four completions of a batch; `changes` give a list with one element each."""
    rows = []
    for number, length in enumerate(LENGTHS):
        group = f"p{number // 2}.b{step}"
        row = {
            "prompt_id": f"p{number // 2}",
            "group_id": group,
            "sample_id": f"{group}.g{number % 2}",
            "trace_id": f"gen-{step}",
            "policy_version": step,
            "published_version": step,
            "response_tokens": [7] * length,
            "policy_mask": [0] * 3 + [1] * length,
            "behavior_logprobs": [-0.5] * length,
            "reward_total": REWARDS[number],
            "t_generate_start": at(step, 5),
            "t_generate_end": at(step, 5 + GENERATE_MS[number]),
        }
        rows.append(rollout(number, **row | {key: values[number] for key, values in changes.items()}))
    return rows


def spans(step: int) -> Iterator[dict[str, Any]]:
    """The spans of a step."""
    tokens, records = sum(LENGTHS), len(LENGTHS)
    counts = {
        "prefill": {"input_tokens": 6, "output_tokens": records, "detail": '{"forwards": 1}'},
        "decode": {"output_tokens": tokens - records, "detail": '{"forwards": 5}'},
        "forward_backward": {
            "input_tokens": 12,
            "policy_tokens": tokens,
            "padded_tokens": 8,
            "detail": '{"forwards": 2}',
        },
    }
    for stage, (start, end) in STAGES.items():
        trains = start >= 65
        trace = f"batch-{step}-mb-0" if trains else f"gen-{step}"
        fields = counts.get(stage, {}) | {"records": records, "policy_version": step, "step": step if trains else None}
        yield span(stage, at(step, start), at(step, end), trace_id=trace, **fields)


def write_step(writer: LedgerWriter, step: int, changes: dict[str, Any], update: dict[str, Any]) -> None:
    """Publish, generate, train, and settle every sample."""
    moment = {"t_start": at(step, -10), "t_end": at(step, -5), "kind": "full", "bytes": 4000}
    versions = {"published_version": step, "policy_version": step}
    writer.write("publications", [moment | versions | {"replicas": 1, "acknowledged": 1, "ok": True}])
    rows = rollouts(step, **changes)
    writer.accept_batch(rows)
    writer.write("spans", list(spans(step)))
    here = {"step": step, "batch_id": f"batch-{step}-mb-0"}
    trained = {"epoch": 0, "policy_version": step, "published_version": step, "t_step_start": at(step, 65), **here}
    writer.write(
        "trained",
        [
            trained
            | {"sample_id": row["sample_id"], "trainer_logprobs": row["behavior_logprobs"]}
            | {"policy_tokens": sum(row["policy_mask"]), "advantage": 1.0}
            for row in rows
        ],
    )
    applied = {"policy_version_before": step, "policy_version_after": step + 1, "applied": True, "grad_norm": 1.0}
    counts = {
        "records": 4,
        "groups": 2,
        "policy_tokens": sum(LENGTHS),
        "padded_tokens": 8,
        "clip_low": 0.2,
        "clip_high": 0.2,
    }
    writer.write("updates", [{**here, **applied, **counts, "t_start": at(step, 65), "t_end": at(step, 90), **update}])
    fates = [(row["sample_id"], sum(row["policy_mask"])) for row in rows]
    settled = [{"sample_id": name, "fate": "trained", "policy_tokens": n, "t": at(step, 90)} for name, n in fates]
    writer.write("fates", settled)


def loop_cell(
    folder: Path,
    changes: dict[str, Any] | None = None,
    updates: dict[int, dict[str, Any]] | None = None,
    notes: dict[str, Any] | None = None,
    steps: int = STEPS,
    batches: dict[int, dict[str, Any]] | None = None,
    **tables: list[dict[str, Any]],
) -> CellLedger:
    """The ledger of the loop.

    Args:
        changes: columns of the rollouts of every batch; `batches`: of single ones, by step.
        updates: columns of single updates, by step.
        notes: notes beside `NOTES`, or in place of them.
        tables: further rows of other tables.
    """
    with LedgerWriter(folder / "streams", "main", "run/cell") as writer:
        for step in range(steps):
            changed = (changes or {}) | (batches or {}).get(step, {})
            write_step(writer, step, changed, (updates or {}).get(step, {}))
        for table, rows in tables.items():
            writer.write(table, rows)
        for key, content in (NOTES | (notes or {})).items():
            writer.write("manifest", [{"key": key, "value": json.dumps(content)}])
    compact(folder / "streams", folder / "ledger", CELL_ID)
    return read_cell(folder / "ledger", CELL_ID)


def figures(ledger: CellLedger, **context: Any) -> dict[str, Value]:
    """Every value of a cell by tag and variant."""
    given: dict[str, Any] = {"task": TASK, "warmup_steps": WARMUP, "price": PRICE, "roofline": ROOFLINE} | context
    return {value.name: value for value in measure_cell(ledger, MeasureContext(**given))}
