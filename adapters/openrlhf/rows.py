"""Rows of the ledger that the controller makes of what engines and ranks said. Standard library only."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.openrlhf.records import Completion, Names

Row = dict[str, Any]
UNTRAINED = "verifier_error"
"""Why a sample was taken and never trained on: a completion of its group has no verdict."""


@dataclass(frozen=True)
class Served:
    """What an engine serves after some number of broadcasts."""

    published_version: int
    policy_version: int


def rollout_row(
    names: Names,
    completion: Completion,
    prompt_tokens: Sequence[int],
    served: Sequence[Served],
    common: Mapping[str, Any],
    *,
    fixed_length: bool,
) -> Row:
    """A row of `rollouts` but for its advantage.

    Args:
        served: by how many broadcasts an engine has taken in.
        common: columns that are the same for all rows of a batch.
    """
    versions = [served[number].policy_version for number in completion.token_served]
    one = len(set(versions)) == 1
    cut = completion.stop_reason == "length" and not fixed_length
    return {
        **common,
        "prompt_id": names.prompt_id,
        "group_id": names.group_id,
        "sample_id": names.sample_id,
        "policy_version": versions[0] if one else None,
        "token_policy_versions": None if one else versions,
        "published_version": served[completion.served[-1][0]].published_version,
        "prompt_tokens": prompt_tokens,
        "response_tokens": completion.tokens,
        "policy_mask": [0] * len(prompt_tokens) + [1] * len(completion.tokens),
        "behavior_logprobs": completion.logprobs,
        "behavior_logprob_kind": "sampled_distribution",
        "decoding": {name: value for name, value in completion.decoding.items() if name != "ignore_eos"},
        "reward": completion.components,
        "reward_total": completion.reward,
        "stop_reason": completion.stop_reason,
        "stop_reason_source": "reported",
        "status": "infrastructure_error" if completion.error else "truncated" if cut else "ok",
        "text": completion.text,
        **completion.times,
    }


def update_row(parts: Sequence[Row], groups: int) -> Row:
    """A row of `updates` from what each rank says of one optimizer step, but for its names."""
    first = parts[0]
    same = ("policy_version_before", "policy_version_after", "applied", "grad_norm", "learning_rate")
    rows = [row for part in parts for row in part["rows"]]
    return {
        **{name: first[name] for name in (*same, "clip_low", "clip_high")},
        "t_start": min(part["t_start"] for part in parts),
        "t_end": max(part["t_end"] for part in parts),
        "loss": sum(part["loss"] for part in parts) / len(parts),
        "records": len(rows),
        "groups": groups,
        "policy_tokens": sum(row["policy_tokens"] for row in rows),
        "padded_tokens": sum(part["padded_tokens"] for part in parts),
    }


def publication_row(served: Served, start: int, end: int, size: int, engines: int, note: str) -> Row:
    """A row of `publications` that every engine has taken in; OpenRLHF gets no word of what arrived."""
    return {
        "published_version": served.published_version,
        "policy_version": served.policy_version,
        "t_start": start,
        "t_end": end,
        "kind": "full",
        "bytes": size,
        "replicas": engines,
        "acknowledged": engines,
        "tensor_hash": None,
        "verified": None,
        "ok": True,
        "detail": json.dumps({"note": note}),
    }


def fate_row(names: Names, completion: Completion, now: int, *, trained: bool) -> Row:
    """A row of `fates`."""
    fate = {"fate": "trained", "reason": None} if trained else {"fate": "dropped", "reason": UNTRAINED}
    return {"sample_id": names.sample_id, **fate, "policy_tokens": len(completion.tokens), "t": now}
