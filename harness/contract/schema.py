"""The tables of the ledger, as Arrow schemas.

Times (`t`, `t_*`) are `time.perf_counter_ns()` in nanoseconds; sizes are bytes. A rate is never stored: counts and
times are, and the measures divide. The record is step 12.1.2 of the module, the tables are DESIGN.md's.
"""

import pyarrow as pa

SCHEMA_VERSION = 2

STAGES: tuple[str, ...] = (
    "startup",
    "prompt_prep",
    "queue_wait",
    "prefill",
    "decode",
    "generate",
    "verifier",
    "batch_assembly",
    "logprob_recompute",
    "forward_backward",
    "optimizer_step",
    "weight_sync",
    "checkpoint",
    "restore",
    "observation",
)
LOGPROB_KINDS = ("sampled_distribution", "raw_softmax", "recomputed")
STOP_REASONS = ("eos", "length", "stop", "aborted", "error")
STOP_SOURCES = ("reported", "derived")
STATUSES = ("ok", "truncated", "infrastructure_error", "rejected_stale")
FATES = ("trained", "dropped", "in_flight")
QUEUE_EVENTS = ("put", "get", "drop", "close", "open")
CAUSES = ("system", "infrastructure", "harness")

DECODING = pa.struct(
    [
        ("temperature", pa.float64()),
        ("top_p", pa.float64()),
        ("top_k", pa.int64()),
        ("min_p", pa.float64()),
        ("max_tokens", pa.int64()),
        ("stop", pa.list_(pa.string())),
        ("seed", pa.int64()),
    ]
)


def _table(spec: str, **nested: pa.DataType) -> pa.Schema:
    """Parse `name:type` words (a `?` after the type: may be null); types not in `_TYPES` come from `nested`."""
    fields = []
    for word in spec.split():
        name, kind = word.split(":")
        type_name = kind.rstrip("?")
        fields.append(pa.field(name, nested.get(type_name, _TYPES.get(type_name)), nullable=kind.endswith("?")))
    return pa.schema(fields)


_TYPES: dict[str, pa.DataType] = {
    "str": pa.string(),
    "i64": pa.int64(),
    "i32": pa.int32(),
    "f64": pa.float64(),
    "bool": pa.bool_(),
    "tokens": pa.list_(pa.int32()),
    "mask": pa.list_(pa.uint8()),
    "versions": pa.list_(pa.int64()),
    "logprobs": pa.list_(pa.float32()),
    "rewards": pa.map_(pa.string(), pa.float64()),
    "decoding": DECODING,
}

WRITTEN: dict[str, pa.Schema] = {
    "rollouts": _table(
        "run_id:str prompt_id:str group_id:str sample_id:str trace_id:str policy_version:i64? "
        "token_policy_versions:versions? published_version:i64? prompt_tokens:tokens response_tokens:tokens "
        "policy_mask:mask behavior_logprobs:logprobs behavior_logprob_kind:str decoding:decoding reward:rewards "
        "reward_total:f64? advantage:f64? stop_reason:str stop_reason_source:str verifier_version:str "
        "tokenizer_hash:str template_hash:str status:str group_complete:bool text:str? t_queued:i64? "
        "t_generate_start:i64? t_first_token:i64? t_generate_end:i64? t_verify_start:i64? t_verify_end:i64?"
    ),
    "trained": _table(
        "sample_id:str batch_id:str step:i64 epoch:i32 policy_version:i64 published_version:i64? "
        "trainer_logprobs:logprobs? old_logprobs:logprobs? advantage:f64? policy_tokens:i64 t_step_start:i64"
    ),
    "updates": _table(
        "step:i64 batch_id:str policy_version_before:i64 policy_version_after:i64 t_start:i64 t_end:i64 applied:bool "
        "loss:f64? grad_norm:f64? learning_rate:f64? records:i64 groups:i64 policy_tokens:i64 padded_tokens:i64 "
        "clip_low:f64? clip_high:f64?"
    ),
    "spans": _table(
        "trace_id:str device:str stage:str policy_version:i64? step:i64? t_start:i64 t_end:i64 cpu_ns:i64? records:i64 "
        "input_tokens:i64 output_tokens:i64 policy_tokens:i64 padded_tokens:i64 detail:str?"
    ),
    "publications": _table(
        "published_version:i64 policy_version:i64 t_start:i64 t_end:i64 kind:str bytes:i64 replicas:i32 "
        "acknowledged:i32 tensor_hash:str? verified:bool? ok:bool detail:str?"
    ),
    "queue": _table(
        "t:i64 event:str records:i64 tokens:i64 depth_records:i64 depth_tokens:i64 depth_bytes:i64 reason:str?"
    ),
    "controls": _table(
        "published_version:i64 policy_version:i64 replica:i32 tokens:i64 engine_logprobs:logprobs "
        "trainer_logprobs:logprobs t:i64"
    ),
    "memory": _table("t:i64 pid:i64 phase:str? component:str source:str bytes:i64"),
    "checkpoints": _table("step:i64 policy_version:i64 t_start:i64 t_end:i64 bytes:i64 path:str items:str ok:bool"),
    "fates": _table("sample_id:str fate:str reason:str? policy_tokens:i64 t:i64"),
    "faults": _table("t:i64 kind:str cause:str where:str rule:str? sample_id:str? detail:str"),
    "native": _table("t:i64? step:i64? key:str value:f64"),
    "manifest": _table("key:str value:str"),
}
"""The tables that processes write."""

ROLLED_BACK = ("rollouts", "trained", "updates", "fates", "publications")
"""The tables that hold the history of training: a restart from a checkpoint takes back what came after it."""

TABLES = WRITTEN | {f"lost_{table}": WRITTEN[table] for table in ROLLED_BACK}
"""The tables of a sealed ledger: those written, and what of the history a later attempt took back."""

ORIGIN = (pa.field("process", pa.string(), nullable=False), pa.field("flush", pa.int32(), nullable=False))
"""Two columns that the writer adds to every row: who wrote it, and in which flush of that process's stream."""


def stored_schema(table: str) -> pa.Schema:
    """The schema of `table` as it lies on disk: its own columns and `ORIGIN`."""
    return pa.schema([*TABLES[table], *ORIGIN])
