"""The invariants of a rollout batch (MEASURES.md, "Rollout record"), each a named rule over Arrow columns.

A rule takes a record batch of the `rollouts` table and returns, for each row, whether it breaks the rule. All work on
whole columns (no Python per token): validation has to keep up with a million tokens a second.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from harness.contract.schema import LOGPROB_KINDS, STATUSES, STOP_REASONS, STOP_SOURCES

Rows: TypeAlias = pa.RecordBatch
NOWHERE = pa.scalar(False)
"""What a rule answers that found nothing at all: the common case, and the cheap one."""


@dataclass(frozen=True)
class Refusal:
    """Why one record is refused: the rule's name, the field, the record, and the reason in words."""

    rule: str
    field: str
    sample_id: str
    reason: str


@dataclass(frozen=True)
class Rule:
    """A named invariant; `broken(rows)` has one boolean a row, true where the row breaks it."""

    name: str
    field: str
    reason: str
    broken: Callable[[Rows], Any]


def _lengths(rows: Rows, column: str) -> Any:
    return pc.list_value_length(rows[column])


def _any_in_list(column: Any, flat_condition: Any) -> Any:
    """One boolean a row: does `flat_condition` (over the flattened list column) hold anywhere in that row's list?"""
    if not pc.any(flat_condition).as_py():
        return NOWHERE
    hit_rows = pc.unique(pc.filter(pc.list_parent_indices(column), flat_condition))
    return pc.is_in(_count(len(column)), value_set=hit_rows.cast(pa.int64()))


def _count(length: int) -> Any:
    """0, 1, ... length - 1, without a Python integer each."""
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), length)), 1)


def _is_prompt(rows: Rows) -> Any:
    """Over the flattened mask: is this position a prompt position?"""
    parent = pc.list_parent_indices(rows["policy_mask"])
    lengths = _lengths(rows, "policy_mask")
    starts = pc.subtract(pc.cumulative_sum(lengths.cast(pa.int64())), lengths)
    position = pc.subtract(_count(len(parent)), pc.take(starts, parent))
    return pc.less(position, pc.take(_lengths(rows, "prompt_tokens"), parent))


def _prompt_masked_in(rows: Rows) -> Any:
    flat = pc.list_flatten(rows["policy_mask"])
    return _any_in_list(rows["policy_mask"], pc.and_(_is_prompt(rows), pc.greater(flat, 0)))


def _mask_length(rows: Rows) -> Any:
    total = pc.add(_lengths(rows, "prompt_tokens"), _lengths(rows, "response_tokens"))
    return pc.not_equal(_lengths(rows, "policy_mask"), total)


def _logprob_off_policy(rows: Rows) -> Any:
    """A log-prob where the mask is 0. Needs equal lengths, which earlier rules have settled."""
    response_mask = pc.filter(pc.list_flatten(rows["policy_mask"]), pc.invert(_is_prompt(rows)))
    present = pc.is_valid(pc.list_flatten(rows["behavior_logprobs"]))
    return _any_in_list(rows["behavior_logprobs"], pc.and_(present, pc.equal(response_mask, 0)))


def _versions_fall(rows: Rows) -> Any:
    column = rows["token_policy_versions"]
    flat, parent = pc.list_flatten(column), pc.list_parent_indices(column)
    if len(flat) < 2:
        return pa.array([False] * len(rows))
    falls = pc.and_(pc.less(flat[1:], flat[:-1]), pc.equal(parent[1:], parent[:-1]))
    return _any_in_list(column, pa.concat_arrays([pa.array([False]), falls]))


def _versions_missing(rows: Rows) -> Any:
    return pc.and_(pc.is_null(rows["policy_version"]), pc.is_null(rows["token_policy_versions"]))


def _versions_length(rows: Rows) -> Any:
    return pc.not_equal(_lengths(rows, "token_policy_versions"), _lengths(rows, "response_tokens"))


def _flat_logprob(condition: Callable[[Any], Any]) -> Callable[[Rows], Any]:
    def broken(rows: Rows) -> Any:
        flat = pc.list_flatten(rows["behavior_logprobs"])
        return _any_in_list(rows["behavior_logprobs"], pc.fill_null(condition(flat), fill_value=False))

    return broken


def _not_in(column: str, allowed: tuple[str, ...]) -> Callable[[Rows], Any]:
    lawful = frozenset(allowed)

    def broken(rows: Rows) -> Any:
        values = rows[column].to_pylist()
        return NOWHERE if lawful.issuperset(values) else pa.array([value not in lawful for value in values])

    return broken


_DECODING_BOUNDS = {
    "temperature": (0.0, float("inf")),
    "min_p": (0.0, 1.0),
    "top_p": (5e-324, 1.0),
    "top_k": (0, 2**63 - 1),
    "max_tokens": (1, 2**63 - 1),
}
"""Smallest and largest lawful value; top_p lies above 0."""


def _decoding_range(rows: Rows) -> Any:
    out: Any = NOWHERE
    for name, (least, most) in _DECODING_BOUNDS.items():
        column = pc.struct_field(rows["decoding"], name)
        found = pc.min_max(column).as_py()
        if found["min"] is not None and (found["min"] < least or found["max"] > most):
            out = pc.or_(out, pc.or_(pc.less(column, least), pc.greater(column, most)))
    return out


def _reward_missing(rows: Rows) -> Any:
    if not rows["reward_total"].null_count:
        return NOWHERE
    scored = pc.is_in(rows["status"], value_set=pa.array(["ok", "truncated"]))
    return pc.and_(scored, pc.is_null(rows["reward_total"]))


def _reward_not_finite(rows: Rows) -> Any:
    return pc.invert(pc.fill_null(pc.is_finite(rows["reward_total"]), fill_value=True))


def _repeated(rows: Rows) -> Any:
    samples = rows["sample_id"].to_pylist()
    if len(set(samples)) == len(samples):
        return NOWHERE
    count: Counter[str] = Counter(samples)
    return pa.array([count[sample] > 1 for sample in samples])


def _group_flag_differs(rows: Rows) -> Any:
    groups, flags = rows["group_id"].to_pylist(), rows["group_complete"].to_pylist()
    if len(set(flags)) == 1:
        return NOWHERE
    both = set(zip(groups, flags, strict=True))
    return pa.array([(group, not flag) in both for group, flag in zip(groups, flags, strict=True)])


def _time_runs_back(rows: Rows) -> Any:
    stamps = ("t_queued", "t_generate_start", "t_first_token", "t_generate_end", "t_verify_start", "t_verify_end")
    out = pa.array([False] * len(rows))
    for earlier, later in pairwise(stamps):
        out = pc.or_(out, pc.fill_null(pc.less(rows[later], rows[earlier]), fill_value=False))
    return out


RULES: tuple[Rule, ...] = (
    Rule("mask_length", "policy_mask", "mask must be as long as prompt and response together", _mask_length),
    Rule(
        "logprob_length",
        "behavior_logprobs",
        "log-probs must be as many as response tokens",
        lambda rows: pc.not_equal(_lengths(rows, "behavior_logprobs"), _lengths(rows, "response_tokens")),
    ),
    Rule(
        "mask_binary",
        "policy_mask",
        "mask values must be 0 or 1",
        lambda rows: _any_in_list(rows["policy_mask"], pc.greater(pc.list_flatten(rows["policy_mask"]), 1)),
    ),
    Rule("prompt_in_mask", "policy_mask", "a prompt token is never a policy token", _prompt_masked_in),
    Rule(
        "logprob_finite",
        "behavior_logprobs",
        "a log-prob must be finite (unknown is null)",
        _flat_logprob(lambda flat: pc.invert(pc.is_finite(flat))),
    ),
    Rule(
        "logprob_positive",
        "behavior_logprobs",
        "a log-prob must be <= 0",
        _flat_logprob(lambda flat: pc.greater(flat, 0.0)),
    ),
    Rule(
        "logprob_off_policy",
        "behavior_logprobs",
        "a token that the policy did not sample has no behaviour log-prob",
        _logprob_off_policy,
    ),
    Rule(
        "logprob_kind",
        "behavior_logprob_kind",
        f"must be one of {LOGPROB_KINDS}",
        _not_in("behavior_logprob_kind", LOGPROB_KINDS),
    ),
    Rule("version_missing", "policy_version", "one version a completion, or one a token", _versions_missing),
    Rule(
        "version_length", "token_policy_versions", "token versions must be as many as response tokens", _versions_length
    ),
    Rule("version_falls", "token_policy_versions", "token versions never decrease", _versions_fall),
    Rule("stop_reason", "stop_reason", f"must be one of {STOP_REASONS}", _not_in("stop_reason", STOP_REASONS)),
    Rule(
        "stop_source",
        "stop_reason_source",
        f"must be one of {STOP_SOURCES}",
        _not_in("stop_reason_source", STOP_SOURCES),
    ),
    Rule("status", "status", f"must be one of {STATUSES}", _not_in("status", STATUSES)),
    Rule("decoding_range", "decoding", "temperature, top_p, top_k, min_p or max_tokens out of range", _decoding_range),
    Rule(
        "reward_missing",
        "reward_total",
        "a scored record has a reward; an error is a status, not a zero",
        _reward_missing,
    ),
    Rule("reward_finite", "reward_total", "a reward must be finite", _reward_not_finite),
    Rule("sample_repeated", "sample_id", "a sample id names one completion", _repeated),
    Rule("group_flag", "group_complete", "a group is complete or incomplete as a whole", _group_flag_differs),
    Rule("time_order", "t_*", "time stamps of the stages must not run back", _time_runs_back),
)

_SHAPE_RULES = 2
"""The first rules settle the lengths that all later ones rely on; where one is broken, the rest is not asked."""


def _hits(rule: Rule, rows: Rows) -> Iterator[Refusal]:
    broken = rule.broken(rows)
    if not pc.any(broken).as_py():
        return
    broken = pc.fill_null(broken, fill_value=False)
    for sample_id in pc.filter(rows["sample_id"], broken).to_pylist():
        yield Refusal(rule.name, rule.field, sample_id, rule.reason)


def rollout_refusals(rows: Rows, published: int | None = None) -> list[Refusal]:
    """All refusals of a batch of rollouts; empty where the batch is lawful.

    Args:
        rows: a record batch of the `rollouts` table.
        published: the newest policy version known to be published, or None where the process does not know it.
    """
    shape = [refusal for rule in RULES[:_SHAPE_RULES] for refusal in _hits(rule, rows)]
    if shape:
        return shape
    found = [refusal for rule in RULES[_SHAPE_RULES:] for refusal in _hits(rule, rows)]
    if published is not None:
        found += _hits(_ahead_of(published), rows)
    return found


def _ahead_of(published: int) -> Rule:
    def broken(rows: Rows) -> Any:
        tokens = rows["token_policy_versions"]
        token_ahead = _any_in_list(tokens, pc.greater(pc.list_flatten(tokens), published))
        return pc.or_(pc.fill_null(pc.greater(rows["policy_version"], published), fill_value=False), token_ahead)

    return Rule("version_ahead", "policy_version", f"no version above the published one ({published})", broken)
