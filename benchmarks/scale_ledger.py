"""A made-up ledger of any size, written batch by batch, so that a report can be timed on it."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from harness.contract import SCHEMA_VERSION, compact
from harness.contract.schema import DECODING, stored_schema

TABLES = ("rollouts", "trained", "updates", "spans", "fates", "manifest")
CELL_ID = "bench.colocated_sync.free.r0"
SAMPLES, GROUP, PROMPT, MEAN_LENGTH, LONGEST = 512, 8, 64, 256, 1024
SECOND = 1_000_000_000
TASK = {"group_size": GROUP, "prompts_per_batch": SAMPLES // GROUP, "micro_batches": 1, "warmup_steps": 3}


def write_scale_ledger(folder: Path, tokens: int) -> Path:
    """A sealed ledger with about `tokens` sampled tokens, one optimizer step a generated batch of 512 completions.

    Returns:
        the folder of the ledger.
    """
    streams = folder / "streams"
    streams.mkdir(parents=True)
    steps = max(5, tokens // (SAMPLES * MEAN_LENGTH))
    generator = np.random.default_rng(7)
    with ExitStack() as stack:
        sinks = {name: stack.enter_context(_open(stack, streams, name)) for name in TABLES}
        for step in range(steps):
            for table, columns in _step(generator, step):
                sinks[table].write_batch(_batch(table, columns))
        sinks["manifest"].write_batch(_batch("manifest", _notes(steps)))
    compact(streams, folder / "ledger", CELL_ID)
    return folder / "ledger"


def _notes(steps: int) -> dict[str, Any]:
    notes = {"window": {"t_start": 0, "t_end": steps * SECOND}, "trainer_models": ["temperature"], "device_count": 1}
    notes["model"] = {"parameters": 10**8, "trainable": 10**8, "bytes": 4 * 10**8, "flops_per_token": 2 * 10**8}
    return {"key": pa.array(list(notes)), "value": pa.array([json.dumps(value) for value in notes.values()])}


def _open(stack: ExitStack, streams: Path, table: str) -> Any:
    file = stack.enter_context((streams / f"main.{table}.arrows").open("wb"))
    metadata = {"rlaxes.schema_version": str(SCHEMA_VERSION), "rlaxes.table": table}
    return pa.ipc.new_stream(file, stored_schema(table).with_metadata(metadata))


def _batch(table: str, columns: dict[str, Any]) -> pa.RecordBatch:
    """Columns as a record batch; one value stands for a whole column, a column that is not given is null."""
    rows = next(len(column) for column in columns.values() if isinstance(column, pa.Array))
    columns = columns | {"process": "main", "flush": 0}
    schema = stored_schema(table)
    arrays = []
    for field in schema:
        column = columns.get(field.name)
        if not isinstance(column, pa.Array):
            column = pa.repeat(pa.scalar(column, field.type), rows)
        arrays.append(column.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _lists(counts: Any, values: Any, kind: pa.DataType) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(offsets, pa.array(values, kind))


def _step(generator: np.random.Generator, step: int) -> Iterator[tuple[str, dict[str, Any]]]:
    start, numbers = step * SECOND, np.arange(SAMPLES)
    lengths = np.clip(generator.lognormal(np.log(MEAN_LENGTH) - 0.125, 0.5, SAMPLES), 1, LONGEST).astype(np.int64)
    behavior = -generator.exponential(0.5, int(lengths.sum())).astype(np.float32)
    groups = pa.array([f"p{number // GROUP}.b{step}" for number in numbers])
    ids = pa.array([f"p{number // GROUP}.b{step}.g{number % GROUP}" for number in numbers])
    tokens = pa.array(lengths)
    yield "rollouts", _rollouts(step, start, ids, groups, lengths, behavior, generator)
    noise = generator.normal(0, 0.02, len(behavior)).astype(np.float32)
    scored = _lists(lengths, np.minimum(behavior + noise, 0.0), pa.float32())
    at = {"step": step, "batch_id": f"batch-{step}-mb-0"}
    row = {"epoch": 0, "policy_version": step, "published_version": step, "trainer_logprobs": scored}
    row |= {"advantage": pa.array(generator.normal(size=SAMPLES)), "policy_tokens": tokens}
    yield "trained", {"sample_id": ids, "t_step_start": start + 6 * SECOND // 10} | at | row
    yield "updates", _update(step, start, int(lengths.sum()), at)
    yield "spans", _spans(step, start, int(lengths.sum()))
    yield "fates", {"sample_id": ids, "fate": "trained", "policy_tokens": tokens, "t": start + SECOND}


def _rollouts(
    step: int, start: int, ids: pa.Array, groups: pa.Array, lengths: Any, behavior: Any, generator: Any
) -> Any:
    whole = lengths + PROMPT
    ends = np.cumsum(whole)
    mask: Any = np.ones(int(whole.sum()), np.uint8)
    for offset in range(PROMPT):
        mask[ends - whole + offset] = 0
    rewards = generator.integers(0, 2, SAMPLES).astype(np.float64)
    decoding = {
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": 0.0,
        "max_tokens": LONGEST,
        "stop": [],
        "seed": 7,
    }
    generated = start + (lengths * (SECOND // 2) // LONGEST)
    texts = {"verifier_version": "v", "tokenizer_hash": "t", "template_hash": "c", "run_id": "bench/cell"}
    kinds = {"behavior_logprob_kind": "sampled_distribution", "status": "ok", "stop_reason_source": "reported"}
    pairs = pa.MapArray.from_arrays(
        np.arange(SAMPLES + 1, dtype=np.int32), pa.repeat("score", SAMPLES), pa.array(rewards)
    )
    return {
        "sample_id": ids,
        "group_id": groups,
        "prompt_id": groups,
        "trace_id": f"gen-{step}",
        "policy_version": step,
        "published_version": step,
        "prompt_tokens": _lists(np.full(SAMPLES, PROMPT), np.ones(SAMPLES * PROMPT, np.int32), pa.int32()),
        "response_tokens": _lists(lengths, generator.integers(0, 50_000, len(behavior)), pa.int32()),
        "policy_mask": _lists(whole, mask, pa.uint8()),
        "behavior_logprobs": _lists(lengths, behavior, pa.float32()),
        "decoding": pa.array([decoding] * SAMPLES, DECODING),
        "reward": pairs,
        "reward_total": pa.array(rewards),
        "stop_reason": "eos",
        "group_complete": True,
        "t_generate_start": start,
        "t_generate_end": pa.array(generated),
        "t_verify_end": start + 6 * SECOND // 10,
        **texts,
        **kinds,
    }


def _update(step: int, start: int, tokens: int, at: dict[str, Any]) -> dict[str, Any]:
    versions = {"policy_version_before": step, "policy_version_after": step + 1, "applied": True, "grad_norm": 1.0}
    counts = {"records": SAMPLES, "groups": SAMPLES // GROUP, "policy_tokens": tokens, "padded_tokens": 0}
    times = {"t_start": start + 6 * SECOND // 10, "t_end": pa.array([start + SECOND])}
    return {**at, **versions, **counts, **times, "loss": 0.0, "clip_low": 0.2, "clip_high": 0.2}


def _spans(step: int, start: int, tokens: int) -> dict[str, Any]:
    stages = ("prefill", "decode", "verifier", "forward_backward", "optimizer_step")
    edges = [start + SECOND * tenth // 10 for tenth in (0, 1, 5, 6, 9, 10)]
    return {
        "trace_id": pa.array([f"gen-{step}"] * 3 + [f"batch-{step}-mb-0"] * 2),
        "stage": pa.array(stages),
        "device": "cpu",
        "policy_version": step,
        "step": pa.array([None, None, None, step, step], pa.int64()),
        "t_start": pa.array(edges[:-1]),
        "t_end": pa.array(edges[1:]),
        "records": SAMPLES,
        "input_tokens": pa.array([SAMPLES // GROUP * PROMPT, 0, 0, SAMPLES * PROMPT, 0]),
        "output_tokens": pa.array([SAMPLES, tokens - SAMPLES, 0, 0, 0]),
        "policy_tokens": pa.array([SAMPLES, tokens - SAMPLES, 0, tokens, 0]),
        "padded_tokens": 0,
    }
