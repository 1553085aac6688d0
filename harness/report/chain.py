"""The identity chain of a sample, read from a cell's ledger [12.5.2]: prompt_id -> sample_id -> behaviour version ->
verifier version -> training batch -> optimizer step -> resulting version."""

import json
import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from harness.contract import CellLedger, read_cell
from harness.errors import UserError

SECOND = 1e9
BEHAVIOR = ("policy_version", "token_policy_versions", "published_version", "behavior_logprob_kind", "decoding")
Chain = dict[str, Any]
Record = dict[str, Any]


def chains_of(run: Path, sample_id: str, cell_id: str | None) -> list[Chain]:
    """The chain of a sample in one cell, or in the first repeat that has it of each adapter, layout and track.

    Raises:
        UserError: there is no such cell, or no ledger has the sample.
    """
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    cells = [cell for cell in manifest["cells"] if cell_id in {None, cell["cell_id"]}]
    if cell_id and not cells:
        known = ", ".join(cell["cell_id"] for cell in manifest["cells"]) or "none"
        raise UserError(f"run {run.name} has no cell {cell_id}; it has {known}")
    found: dict[tuple[str, str, str], Chain] = {}
    example = None
    for cell in sorted(cells, key=lambda c: (c["adapter"], c["layout"], c["track"], c["repeat"])):
        key = (cell["adapter"], cell["layout"], cell["track"])
        ledger = _readable(run, cell["cell_id"])
        if key in found or ledger is None:
            continue
        if chain := chain_of(ledger, sample_id, _prompt_texts(run)):
            found[key] = {"adapter": key[0], "layout": key[1], "track": key[2], "repeat": cell["repeat"], **chain}
        example = example or _example(ledger)
    if not found:
        hint = f"; one that is there: {example}" if example else ""
        raise UserError(f"no ledger of run {run.name} has a sample {sample_id}{hint}")
    return list(found.values())


def _readable(run: Path, cell_id: str) -> CellLedger | None:
    try:
        return read_cell(run / "ledger", cell_id)
    except ValueError:
        return None


def _example(ledger: CellLedger) -> str | None:
    for batch in pq.ParquetFile(ledger.path("rollouts")).iter_batches(1, columns=["sample_id"]):
        return str(batch["sample_id"][0].as_py())
    return None


def _prompt_texts(run: Path) -> dict[str, str]:
    path = run / "prompts.jsonl"
    if not path.exists():
        return {}
    prompts = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {prompt["prompt_id"]: prompt["text"] for prompt in prompts}


def _rows(ledger: CellLedger, table: str, column: str, value: Any) -> list[Record]:
    found = pq.read_table(ledger.path(table), filters=[(column, "=", value)])
    return list(found.to_pylist())


def chain_of(ledger: CellLedger, sample_id: str, prompts: dict[str, str]) -> Chain | None:
    """The chain of a sample as plain data, times in seconds since the cell's first span; None where it is not there."""
    rollouts = _rows(ledger, "rollouts", "sample_id", sample_id)
    if not rollouts:
        return None
    rollout, origin = rollouts[0], _origin(ledger)
    fates = _rows(ledger, "fates", "sample_id", sample_id)
    trained = sorted(_rows(ledger, "trained", "sample_id", sample_id), key=lambda row: row["t_step_start"])
    return {
        "cell_id": ledger.cell_id,
        "prompt": {
            "prompt_id": rollout["prompt_id"],
            "tokens": len(rollout["prompt_tokens"]),
            "text": prompts.get(rollout["prompt_id"]),
        },
        "rollout": _rollout(rollout, origin),
        "behavior": {key: rollout[key] for key in BEHAVIOR},
        "verifier": {
            "verifier_version": rollout["verifier_version"],
            "reward": dict(rollout["reward"]),
            "reward_total": rollout["reward_total"],
            "start_s": _seconds(rollout["t_verify_start"], origin),
            "end_s": _seconds(rollout["t_verify_end"], origin),
        },
        "trained": [_consumption(ledger, rollout, row, origin) for row in trained],
        "fate": {key: fates[0][key] for key in ("fate", "reason")} if fates else None,
    }


def _origin(ledger: CellLedger) -> int:
    starts = pq.read_table(ledger.path("spans"), columns=["t_start"])["t_start"].to_pylist()
    return min(starts, default=0)


def _seconds(t: int | None, origin: int) -> float | None:
    return None if t is None else (t - origin) / SECOND


def _rollout(rollout: Record, origin: int) -> Record:
    kept = ("sample_id", "group_id", "trace_id", "stop_reason", "stop_reason_source", "status", "advantage", "text")
    times = ("t_queued", "t_generate_start", "t_first_token", "t_generate_end")
    return {
        **{key: rollout[key] for key in kept},
        **{key.removeprefix("t_") + "_s": _seconds(rollout[key], origin) for key in times},
        "tokens": rollout["response_tokens"],
        "policy_tokens": sum(rollout["policy_mask"]),
        "behavior_logprobs": rollout["behavior_logprobs"],
    }


def _consumption(ledger: CellLedger, rollout: Record, row: Record, origin: int) -> Record:
    """One optimizer step that consumed the sample, and what came of it."""
    updates = _rows(ledger, "updates", "step", row["step"])
    update = updates[0] if updates else None
    after = update["policy_version_after"] if update else None
    published = _rows(ledger, "publications", "policy_version", after) if after is not None else []
    ended, began = rollout["t_generate_end"], _first_pass(ledger, row)
    return {
        "batch_id": row["batch_id"],
        "step": row["step"],
        "epoch": row["epoch"],
        "start_s": _seconds(began, origin),
        "policy_version": row["policy_version"],
        "lag_updates": _difference(row["policy_version"], rollout["policy_version"]),
        "lag_publications": _difference(row["published_version"], rollout["published_version"]),
        "age_s": None if ended is None or began < ended else (began - ended) / SECOND,
        "advantage": row["advantage"],
        "policy_tokens": row["policy_tokens"],
        "trainer_logprobs": row["trainer_logprobs"],
        "mean_log_ratio": _mean_log_ratio(row["trainer_logprobs"], rollout["behavior_logprobs"]),
        "applied": update["applied"] if update else None,
        "loss": update["loss"] if update else None,
        "grad_norm": update["grad_norm"] if update else None,
        "resulting_policy_version": after,
        "published_as": published[0]["published_version"] if published else None,
        "published_s": _seconds(published[0]["t_end"], origin) if published else None,
    }


def _first_pass(ledger: CellLedger, row: Record) -> int:
    """When the step's first forward pass began. A framework may count its step from before the generation in it."""
    passes = [span for span in _rows(ledger, "spans", "step", row["step"]) if span["stage"] == "forward_backward"]
    return min((int(span["t_start"]) for span in passes), default=int(row["t_step_start"]))


def _difference(newer: int | None, older: int | None) -> int | None:
    return None if newer is None or older is None else newer - older


def _mean_log_ratio(trainer: list[float | None] | None, behavior: list[float | None]) -> float | None:
    """Mean of `log pi_theta - log mu_v` over the policy tokens that have both [12.4.2]."""
    pairs = zip(trainer or [], behavior, strict=False)
    ratios = [new - old for new, old in pairs if new is not None and old is not None and math.isfinite(new - old)]
    return sum(ratios) / len(ratios) if ratios else None
