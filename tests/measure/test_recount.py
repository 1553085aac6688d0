"""Ratios, lags and mismatch of random ledgers, counted again token by token in plain Python.

The rows that the steps consume lie in another order than the rollouts, several steps consume each of them, and some
positions are not the policy's or have no log-prob.
"""

import json
import math
from collections import defaultdict
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import pytest

from harness.contract import CellLedger, LedgerWriter, compact, read_cell
from harness.measure import columns
from tests.ledgers import CELL_ID, rollout
from tests.measure.loops import figures

BATCHES, SAMPLES, EPOCHS = 5, 6, 2
LOW, HIGH = 0.1, 0.2
Row = dict[str, Any]


def masked(generator: np.random.Generator, mask: list[int], center: float) -> list[float | None]:
    return [float(np.float32(-abs(generator.normal(center, 0.3)))) if own else None for own in mask]


def make_rollout(generator: np.random.Generator, batch: int, number: int) -> Row:
    length = int(generator.integers(1, 20))
    mask = [1, *generator.integers(0, 2, length - 1).tolist()]
    behavior = masked(generator, mask, 1.0)
    if number == 1:
        behavior[0] = None  # a policy token whose log-prob could not be had
    group = f"p{number // 2}.b{batch}"
    at = {"trace_id": f"gen-{batch}", "policy_version": batch * EPOCHS, "published_version": batch * EPOCHS}
    tokens = {"response_tokens": [7] * length, "policy_mask": [0, 0, 0, *mask], "behavior_logprobs": behavior}
    times = {"t_generate_start": batch * 1000, "t_generate_end": batch * 1000 + number}
    return rollout(number, group_id=group, sample_id=f"{group}.g{number % 2}", **at, **tokens, **times)


def make_trained(generator: np.random.Generator, row: Row, batch: int, epoch: int) -> Row:
    mask = row["policy_mask"][3:]
    step = batch * EPOCHS + epoch
    return {
        "sample_id": row["sample_id"],
        "batch_id": f"batch-{batch}-e{epoch}",
        "step": step,
        "epoch": epoch,
        "policy_version": step,
        "published_version": step,
        "trainer_logprobs": masked(generator, mask, 1.0),
        "old_logprobs": masked(generator, mask, 1.0) if generator.random() < 0.8 else None,
        "advantage": float(generator.normal()),
        "policy_tokens": sum(mask),
        "t_step_start": batch * 1000 + 500 + epoch * 100,
    }


def update(step: int, rows: list[Row]) -> Row:
    start = step // EPOCHS * 1000 + 500 + step % EPOCHS * 100
    tokens = sum(row["policy_tokens"] for row in rows)
    counts = {"records": len(rows), "groups": SAMPLES // 2, "policy_tokens": tokens, "padded_tokens": 0}
    versions = {"policy_version_before": step, "policy_version_after": step + 1, "applied": True, "grad_norm": 1.0}
    clips = {"clip_low": LOW, "clip_high": HIGH}
    return {
        "step": step,
        "batch_id": rows[0]["batch_id"],
        "t_start": start,
        "t_end": start + 90,
        **counts,
        **versions,
        **clips,
    }


def random_ledger(folder: Path, seed: int) -> tuple[CellLedger, dict[str, Row], list[Row]]:
    generator = np.random.default_rng(seed)
    rollouts: dict[str, Row] = {}
    trained: list[Row] = []
    moment = {"t_start": 0, "t_end": 0, "kind": "shared", "bytes": 0, "replicas": 1, "acknowledged": 1, "ok": True}
    with LedgerWriter(folder / "streams", "main", "run/cell") as writer:
        for batch in range(BATCHES):
            version = batch * EPOCHS
            writer.write("publications", [moment | {"published_version": version, "policy_version": version}])
            rows = [make_rollout(generator, batch, number) for number in range(SAMPLES)]
            writer.accept_batch(rows)
            rollouts |= {row["sample_id"]: row for row in rows}
            for epoch in range(EPOCHS):
                trained += [make_trained(generator, row, batch, epoch) for row in rows]
        generator.shuffle(trained)  # type: ignore[arg-type]
        writer.write("trained", trained)
        by_step: dict[int, list[Row]] = defaultdict(list)
        for row in trained:
            by_step[row["step"]].append(row)
        writer.write("updates", [update(step, rows) for step, rows in sorted(by_step.items())])
        writer.write("manifest", [{"key": "trainer_models", "value": json.dumps(["temperature"])}])
    compact(folder / "streams", folder / "ledger", CELL_ID)
    return read_cell(folder / "ledger", CELL_ID), rollouts, trained


def log_weights(row: Row, rollouts: dict[str, Row]) -> list[float]:
    behavior = rollouts[row["sample_id"]]["behavior_logprobs"]
    pairs = zip(row["trainer_logprobs"], behavior, strict=True)
    return [new - old for new, old in pairs if new is not None and old is not None]


def ess(log_w: list[float]) -> float:
    weights = [math.exp(value) for value in log_w]
    return sum(weights) ** 2 / sum(w * w for w in weights)


def binding(row: Row) -> int:
    if row["old_logprobs"] is None:
        return 0
    pairs = [(n, o) for n, o in zip(row["trainer_logprobs"], row["old_logprobs"], strict=True) if n is not None]
    ratios = [math.exp(new - old) for new, old in pairs]
    up = sum(r > 1 + HIGH for r in ratios) if row["advantage"] > 0 else 0
    return up + (sum(r < 1 - LOW for r in ratios) if row["advantage"] < 0 else 0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("piece", [7, 2_000_000])
def test_recount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, piece: int) -> None:
    monkeypatch.setattr(columns, "TOKENS_A_PIECE", piece)
    ledger, rollouts, trained = random_ledger(tmp_path, seed)
    found = {name: value.value for name, value in figures(ledger, warmup_steps=EPOCHS).items()}
    kept = [row for row in trained if row["step"] >= EPOCHS]
    weights = {id(row): log_weights(row, rollouts) for row in kept}
    tokens = [value for row in kept for value in weights[id(row)]]
    assert found["log_ratio_mean"] == pytest.approx(fmean(map(abs, tokens)), rel=1e-5)
    assert found["log_ratio_max"] == pytest.approx(max(map(abs, tokens)), rel=1e-5)
    assert found["clip_fraction"] == pytest.approx(
        sum(not 1 - LOW <= math.exp(value) <= 1 + HIGH for value in tokens) / len(tokens)
    )
    assert found["support_violations"] == sum(row["policy_tokens"] - len(weights[id(row)]) for row in kept)
    steps = sorted({row["step"] for row in kept})
    by_step = {step: [weights[id(row)] for row in kept if row["step"] == step and weights[id(row)]] for step in steps}
    flat = {step: [value for row in rows for value in row] for step, rows in by_step.items()}
    assert found["ess_tokens"] == pytest.approx(median(ess(flat[step]) for step in steps), rel=1e-5)
    assert found["ess_tokens_share"] == pytest.approx(median(ess(flat[s]) / len(flat[s]) for s in steps), rel=1e-5)
    sequences = {step: ess([sum(row) for row in rows]) for step, rows in by_step.items()}
    assert found["ess_sequences"] == pytest.approx(median(sequences.values()), rel=1e-5)
    lowest = min(sequences[step] / len(by_step[step]) for step in steps)
    assert found["ess_sequences_share_lowest"] == pytest.approx(lowest, rel=1e-5)
    lags = [row["policy_version"] - rollouts[row["sample_id"]]["policy_version"] for row in kept]
    assert (found["lag_max"], found["lag_p50"]) == (EPOCHS - 1, float(np.quantile(lags, 0.5, method="inverted_cdf")))
    fresh = [value for row, lag in zip(kept, lags, strict=True) if lag == 0 for value in weights[id(row)]]
    assert found["mismatch_mean"] == pytest.approx(fmean(map(abs, fresh)), rel=1e-5)
    assert found["mismatch_k1"] == pytest.approx(-fmean(fresh), rel=1e-4, abs=1e-6)
    assert found["mismatch_k3"] == pytest.approx(fmean(math.expm1(value) - value for value in fresh), rel=1e-4)
    removed, all_tokens = sum(map(binding, kept)), sum(row["policy_tokens"] for row in kept)
    assert found["binding_clip_fraction"] == pytest.approx(removed / all_tokens)
