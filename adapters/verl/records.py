"""Rows of the ledger from what rides through verl's TransferQueue with each completion. Imports no framework."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from adapters.verl.samples import ROUND, sample_id
from harness.task.bundle import Bundle

Row = dict[str, Any]
FIELD = "rlaxes"
"""The key of a completion's `extra_fields` that is ours."""
STOPS = {"length": "length", "stop": "eos", "abort": "aborted"}
"""vLLM's word for why a completion ended, in the contract's."""


@dataclass(frozen=True)
class Facts:
    """Columns of `rollouts` that are the same for a whole run, and what a stop means in it."""

    columns: Row
    fixed_length: bool

    @classmethod
    def of(cls, cell: Mapping[str, Any]) -> Self:
        """From the cell and its bundle."""
        task, bundle = cell["task"], Bundle.load(Path(cell["bundle"]))
        decoding = {key: task[key] for key in ("temperature", "top_p", "top_k", "min_p", "max_tokens")}
        columns = {
            "run_id": cell["run_id"],
            "decoding": {**decoding, "stop": [], "seed": cell["seed"]},
            "verifier_version": bundle.verifier_version,
            "tokenizer_hash": bundle.tokenizer_hash,
            "template_hash": bundle.template_hash,
            "behavior_logprob_kind": "sampled_distribution",
            "stop_reason_source": "reported",
        }
        return cls(columns, cell["track"] == "fixed_length")


def trace_of(number: int) -> str:
    """The id that spans and records of a generated batch carry."""
    return f"gen-{number}"


def tokens_row(row: Mapping[str, Any], ours: Mapping[str, Any], facts: Facts) -> Row:
    """What is known of a completion when its last token is there.

    Args:
        row: prompts, responses, response_mask, rollout_log_probs as lists; extra_info, session_id, the batch's number.
        ours: what the agent loop added to it (`adapters.verl.turn`).
    """
    extra, number = row["extra_info"], int(row[ROUND])
    reason = STOPS.get(str(ours.get("finish_reason")), "stop")
    cut = reason == "length" and not facts.fixed_length
    times = {
        key: ours[key] for key in ("t_queued", "t_generate_start", "t_first_token", "t_generate_end") if key in ours
    }
    prompt = list(row["prompts"])
    return {
        **facts.columns,
        **times,
        "trace_id": trace_of(number),
        "prompt_id": extra["prompt_id"],
        "group_id": f"{extra['prompt_id']}.b{number}",
        "sample_id": sample_id(extra["prompt_id"], number, int(row["session_id"])),
        "prompt_tokens": prompt,
        "response_tokens": list(row["responses"]),
        "policy_mask": [0] * len(prompt) + [int(value) for value in row["response_mask"]],
        "behavior_logprobs": [min(float(value), 0.0) for value in row["rollout_log_probs"]],
        "stop_reason": reason,
        "status": "truncated" if cut else "ok",
    }


def verdict_columns(said: Mapping[str, Any]) -> Row:
    """What the reward function said of a completion (`adapters.verl.reward`)."""
    return {
        "reward": said["rlaxes_components"],
        "reward_total": float(said["score"]),
        "text": said["rlaxes_text"],
        "t_verify_start": said["t_verify_start"],
        "t_verify_end": said["t_verify_end"],
    }


def lost_row(output: Any, row: Mapping[str, Any], facts: Facts) -> tuple[Row, Row]:
    """Rollout and fate of a completion whose verdict could not be reached. verl takes it out of its group without a
    word of it; the version that sampled it is that of its batch.

    Args:
        output: verl's `AgentLoopOutput`.
        row: the row of the data that it continues.
    """
    lists = {
        "prompts": output.prompt_ids,
        "responses": output.response_ids,
        "response_mask": output.response_mask,
        "rollout_log_probs": output.response_logprobs,
    }
    ours = output.extra_fields[FIELD]
    rollout = tokens_row({**row, **lists}, ours, facts)
    versions = {"policy_version": ours["policy_version"], "published_version": ours["published_version"]}
    rollout |= versions | {
        "status": "infrastructure_error",
        "reward": {},
        "reward_total": None,
        "group_complete": False,
    }
    return rollout, fate_row(rollout, "dropped", "verifier_error", time.perf_counter_ns())


def fate_row(rollout: Mapping[str, Any], fate: str, reason: str | None, t: int) -> Row:
    """A row of `fates`."""
    tokens = sum(rollout["policy_mask"])
    return {"sample_id": rollout["sample_id"], "fate": fate, "reason": reason, "policy_tokens": tokens, "t": t}


def mark_groups(rows: Sequence[Row], group_size: int) -> None:
    """Say of each row whether all of its group is there."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["group_id"]] = counts.get(row["group_id"], 0) + 1
    for row in rows:
        row["group_complete"] = counts[row["group_id"]] == group_size
