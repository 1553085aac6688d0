"""The rollouts of a cell as columns, one element a completion; token lists are read once and reduced."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.contract import CellLedger
from harness.contract.schema import LOGPROB_KINDS, STATUSES, STOP_REASONS
from harness.measure.columns import (
    MISSING,
    Array,
    Scratch,
    by_run,
    codes,
    flat_numbers,
    floats,
    integers,
    lengths,
    pieces,
    starts_of,
)

KNOBS = ("temperature", "top_p", "top_k", "min_p")
_OFF = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0}
_COLUMNS = (
    "policy_version",
    "token_policy_versions",
    "published_version",
    "policy_mask",
    "behavior_logprobs",
    "behavior_logprob_kind",
    *(f"decoding.{knob}" for knob in KNOBS),
    "reward_total",
    "stop_reason",
    "status",
    "group_complete",
    "t_generate_start",
    "t_generate_end",
)


@dataclass(frozen=True)
class Rollouts:
    """Columns in the order of the file; integers that were null are -1.

    Attributes:
        group, trace: codes; `traces` names the latter.
        version: the policy version, the oldest of a completion's tokens where they have several.
        newer_mean, newer_most: by how much its tokens' versions are above that one: on average, and at most.
        prompt_tokens, response_tokens, policy_tokens, known_logprobs: counts; the last of finite behaviour log-probs.
        kind, stop_reason, status: positions in the contract's lists of them.
        reward: total reward, NaN where there is none.
        knobs: bit k is set where decoding knob `KNOBS[k]` is in use.
        behavior, starts: all behaviour log-probs end to end (NaN: null), and where each completion's begin.
    """

    group: Array
    trace: Array
    traces: list[str]
    version: Array
    newer_mean: Array
    newer_most: Array
    published: Array
    prompt_tokens: Array
    response_tokens: Array
    policy_tokens: Array
    known_logprobs: Array
    reward: Array
    complete: Array
    kind: Array
    stop_reason: Array
    status: Array
    knobs: Array
    t_start: Array
    t_end: Array
    behavior: Scratch = field(repr=False)

    def __len__(self) -> int:
        return len(self.group)

    @property
    def starts(self) -> Array:
        """Where the behaviour log-probs of each completion begin."""
        return starts_of(self.response_tokens)

    def knob(self, name: str) -> Array:
        """Which completions were sampled with that decoding knob in use."""
        used: Array = (self.knobs >> KNOBS.index(name)) & 1 == 1
        return used

    @property
    def misdeclared(self) -> Array:
        """Completions whose log-probs are those of the raw softmax although decoding sampled from another one."""
        wrong: Array = self.is_kind("raw_softmax") & (self.knobs > 0)
        return wrong

    def is_kind(self, name: str) -> Array:
        """Which completions carry log-probs of that kind."""
        same: Array = self.kind == LOGPROB_KINDS.index(name)
        return same

    def has_status(self, name: str) -> Array:
        """Which completions have that status."""
        same: Array = self.status == STATUSES.index(name)
        return same

    def stopped_by(self, name: str) -> Array:
        """Which completions stopped for that reason."""
        same: Array = self.stop_reason == STOP_REASONS.index(name)
        return same


def read_rollouts(ledger: CellLedger) -> Rollouts:
    """Read the `rollouts` table in pieces; what stays in memory is about 80 bytes a completion."""
    path = ledger.path("rollouts")
    behavior = Scratch()
    parts = [_reduce(piece, behavior) for piece in pieces(path, _COLUMNS, "behavior_logprobs")]
    group, _ = codes(path, "group_id")
    trace, traces = codes(path, "trace_id")
    columns = {name: _join([part[name] for part in parts]) for name in _NAMES}
    return Rollouts(group=group, trace=trace, traces=traces, behavior=behavior, **columns)


_NAMES = (
    "version",
    "newer_mean",
    "newer_most",
    "published",
    "prompt_tokens",
    "response_tokens",
    "policy_tokens",
    "known_logprobs",
    "reward",
    "complete",
    "kind",
    "stop_reason",
    "status",
    "knobs",
    "t_start",
    "t_end",
)


def _join(parts: list[Array]) -> Array:
    return np.concatenate(parts) if parts else np.empty(0)


def _reduce(piece: pa.RecordBatch, behavior: Scratch) -> dict[str, Array]:
    logprobs = flat_numbers(piece["behavior_logprobs"], np.float32)
    behavior.append(logprobs)
    response = lengths(piece["behavior_logprobs"])
    whole = lengths(piece["policy_mask"])
    mask = flat_numbers(piece["policy_mask"], np.int32)
    return {
        **_versions(piece),
        "published": integers(piece["published_version"], np.int32),
        "prompt_tokens": (whole - response).astype(np.int32),
        "response_tokens": response.astype(np.int32),
        "policy_tokens": by_run(np.add, mask, whole, 0).astype(np.int32),
        "known_logprobs": by_run(np.add, np.isfinite(logprobs).astype(np.int32), response, 0),
        "reward": floats(piece["reward_total"]),
        "complete": integers(piece["group_complete"], np.int8) == 1,
        "kind": _closed(piece["behavior_logprob_kind"], LOGPROB_KINDS),
        "stop_reason": _closed(piece["stop_reason"], STOP_REASONS),
        "status": _closed(piece["status"], STATUSES),
        "knobs": _knobs(piece["decoding"]),
        "t_start": integers(piece["t_generate_start"]),
        "t_end": integers(piece["t_generate_end"]),
    }


def _closed(column: Any, allowed: tuple[str, ...]) -> Array:
    """Texts of a closed set as their positions in it."""
    return integers(pc.index_in(column, value_set=pa.array(allowed)), np.int8)


def _versions(piece: pa.RecordBatch) -> dict[str, Array]:
    """The oldest version of each completion, and how far its tokens lie above it."""
    version = integers(piece["policy_version"], np.int32)
    mean: Array = np.zeros(len(version), np.float32)
    most: Array = np.zeros(len(version), np.int32)
    tokens = piece["token_policy_versions"]
    if tokens.null_count < len(tokens):
        counts, flat = lengths(tokens), flat_numbers(tokens, np.int32)
        told = counts > 0
        oldest = by_run(np.minimum, flat, counts, MISSING)
        version = np.where(told, oldest, version)
        sums = by_run(np.add, flat.astype(np.int64), counts, 0)
        mean = np.where(told, sums / np.maximum(counts, 1) - oldest, 0.0).astype(np.float32)
        most = np.where(told, by_run(np.maximum, flat, counts, MISSING) - oldest, 0).astype(np.int32)
    return {"version": version, "newer_mean": mean, "newer_most": most}


def _knobs(decoding: Any) -> Array:
    bits: Array = np.zeros(len(decoding), np.int8)
    for number, knob in enumerate(KNOBS):
        used = floats(pc.struct_field(decoding, knob)) != _OFF[knob]
        bits |= used.astype(np.int8) << number
    return bits


def sample_ids(ledger: CellLedger, table: str) -> Any:
    """The sample ids of a table, for a join; not kept."""
    return pq.read_table(ledger.path(table), columns=["sample_id"], use_threads=False)["sample_id"]
