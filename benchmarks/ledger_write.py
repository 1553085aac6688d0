"""How many token records a second one core writes through the ledger's own writer, every invariant checked."""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from harness.contract import LedgerWriter, compact

SAMPLES, TOKENS, BATCHES, REPEATS = 64, 256, 40, 3
WANTED = 1_000_000
DECODING = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "max_tokens": TOKENS, "stop": [], "seed": 17}


def _rollout(batch: int, number: int) -> dict[str, Any]:
    """A rollout as an adapter gives it: Python lists, one element a token."""
    return {
        "run_id": "bench/ledger",
        "prompt_id": f"p{number // 8}",
        "group_id": f"p{number // 8}.b{batch}",
        "sample_id": f"p{number // 8}.b{batch}.g{number % 8}",
        "trace_id": f"gen-{batch}",
        "policy_version": 0,
        "published_version": 0,
        "prompt_tokens": list(range(64)),
        "response_tokens": list(range(TOKENS)),
        "policy_mask": [0] * 64 + [1] * TOKENS,
        "behavior_logprobs": [-0.5 - token / TOKENS for token in range(TOKENS)],
        "behavior_logprob_kind": "sampled_distribution",
        "decoding": DECODING,
        "reward": {"correctness": float(number % 2)},
        "reward_total": float(number % 2),
        "advantage": number % 2 - 0.5,
        "stop_reason": "length",
        "stop_reason_source": "reported",
        "verifier_version": "bench",
        "tokenizer_hash": "bench",
        "template_hash": "bench",
        "status": "ok",
        "group_complete": True,
    }


def _write(folder: Path, batches: list[list[dict[str, Any]]]) -> tuple[float, float]:
    """Token records per second of this process's time while writing, and while compacting."""
    tokens = len(batches) * SAMPLES * TOKENS
    published = {"published_version": 0, "policy_version": 0, "t_start": 0, "t_end": 0, "kind": "shared", "bytes": 0}
    start = time.process_time()
    with LedgerWriter(folder / "streams", "main", "bench/ledger") as writer:
        writer.write("publications", [published | {"replicas": 1, "acknowledged": 1, "ok": True}])
        for batch in batches:
            writer.accept_batch(batch)
    written = time.process_time()
    compact(folder / "streams", folder / "ledger", "bench")
    return tokens / (written - start), tokens / (time.process_time() - written)


def main() -> None:
    """Print both rates as ratios: 1 is one million token records a second. The first of the runs only warms up."""
    batches = [[_rollout(batch, number) for number in range(SAMPLES)] for batch in range(BATCHES)]
    rates = []
    for _ in range(1 + REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            rates.append(_write(Path(folder), batches))
    for name, values in zip(("written", "compacted"), zip(*rates[1:], strict=True), strict=True):
        middle = statistics.median(values) / WANTED
        wanted = "; wanted: at least 1" if name == "written" else ""
        print(f"million token records {name} per core-second: {middle:.2f} (median of {REPEATS} runs{wanted})")


if __name__ == "__main__":
    main()
