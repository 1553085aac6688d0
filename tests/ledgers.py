"""Small lawful ledgers for tests, with knobs to break them."""

import time
from pathlib import Path
from typing import Any

from harness.contract import CellLedger, LedgerWriter, compact, read_cell

CELL_ID = "fake.colocated_sync.free.r0"
DECODING = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "max_tokens": 8, "stop": [], "seed": None}


def rollout(number: int = 0, **changes: Any) -> dict[str, Any]:
    """A lawful rollout: 3 prompt tokens, 4 response tokens, all of them the policy's."""
    row: dict[str, Any] = {
        "run_id": "run/cell",
        "prompt_id": f"p{number // 2}",
        "group_id": f"p{number // 2}.b0",
        "sample_id": f"p{number // 2}.b0.g{number % 2}",
        "trace_id": "gen-0",
        "policy_version": 0,
        "token_policy_versions": None,
        "published_version": 0,
        "prompt_tokens": [5, 6, 7],
        "response_tokens": [8, 9, 10, 1],
        "policy_mask": [0, 0, 0, 1, 1, 1, 1],
        "behavior_logprobs": [-0.5, -0.25, -1.0, -0.125],
        "behavior_logprob_kind": "sampled_distribution",
        "decoding": DECODING,
        "reward": {"correctness": float(number % 2)},
        "reward_total": float(number % 2),
        "advantage": 0.5,
        "stop_reason": "eos",
        "stop_reason_source": "reported",
        "verifier_version": "v1",
        "tokenizer_hash": "t",
        "template_hash": "c",
        "status": "ok",
        "group_complete": True,
        "text": "12",
    }
    return row | changes


def span(stage: str, start: int, end: int, **fields: Any) -> dict[str, Any]:
    """A span with zero counts unless told."""
    counts = {"records": 0, "input_tokens": 0, "output_tokens": 0, "policy_tokens": 0, "padded_tokens": 0}
    return {"trace_id": "gen-0", "device": "cpu", "stage": stage, "t_start": start, "t_end": end} | counts | fields


def write_lawful(writer: LedgerWriter, samples: int = 4, **rollout_changes: Any) -> None:
    """One publication, one generated batch, one optimizer step that consumes all of it."""
    now = time.perf_counter_ns()
    publication = {"published_version": 0, "policy_version": 0, "t_start": now - 9, "t_end": now - 8, "kind": "shared"}
    writer.write("publications", [publication | {"bytes": 0, "replicas": 1, "acknowledged": 1, "ok": True}])
    rows = [rollout(n, t_generate_start=now, t_generate_end=now + 10, **rollout_changes) for n in range(samples)]
    writer.accept_batch(rows)
    decode = span("decode", now, now + 10, output_tokens=4 * samples, records=samples, policy_version=0)
    train = span("forward_backward", now + 10, now + 20, policy_tokens=4 * samples, step=0, policy_version=0)
    writer.write("spans", [decode, train])
    common = {"batch_id": "batch-0-mb-0", "step": 0}
    writer.write(
        "trained",
        [
            {
                "sample_id": row["sample_id"],
                "epoch": 0,
                "policy_version": 0,
                "trainer_logprobs": row["behavior_logprobs"],
                "advantage": 0.5,
                "policy_tokens": 4,
                "t_step_start": now + 10,
                **common,
            }
            for row in rows
        ],
    )
    versions = {"policy_version_before": 0, "policy_version_after": 1, "applied": True}
    counts = {"records": samples, "groups": samples // 2, "policy_tokens": 4 * samples, "padded_tokens": 0}
    writer.write("updates", [{"t_start": now + 10, "t_end": now + 20, **common, **versions, **counts}])
    fates = [{"sample_id": r["sample_id"], "fate": "trained", "policy_tokens": 4, "t": now + 20} for r in rows]
    writer.write("fates", fates)


def lawful_cell(folder: Path, **rollout_changes: Any) -> CellLedger:
    """A sealed lawful ledger under `folder`/ledger."""
    with LedgerWriter(folder / "streams", "main", "run/cell") as writer:
        write_lawful(writer, **rollout_changes)
    compact(folder / "streams", folder / "ledger", CELL_ID)
    return read_cell(folder / "ledger", CELL_ID)
