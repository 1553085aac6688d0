from types import SimpleNamespace
from typing import Any

import pytest

from adapters.verl.records import FIELD, Facts, fate_row, lost_row, mark_groups, tokens_row, trace_of, verdict_columns
from adapters.verl.samples import PUBLISHED, ROUND, VERSION, plain, sample_ids

FACTS = Facts({"run_id": "run"}, fixed_length=False)
ROW: dict[str, Any] = {
    "extra_info": {"prompt_id": "p1"},
    "session_id": 2,
    ROUND: 3,
    "prompts": [4, 5],
    "responses": [6, 7, 1],
    "response_mask": [1, 1, 1],
    "rollout_log_probs": [-0.5, 1e-8, -0.1],
}
OURS: dict[str, Any] = {
    "t_queued": 1,
    "t_generate_start": 2,
    "t_generate_end": 4,
    "finish_reason": "stop",
    "policy_version": 3,
    "published_version": 3,
}


def test_a_completion_is_named_by_its_prompt_its_batch_and_its_place() -> None:
    row = tokens_row(ROW, OURS, FACTS)
    assert (row["sample_id"], row["group_id"], row["trace_id"]) == ("p1.b3.g2", "p1.b3", trace_of(3))
    assert row["policy_mask"] == [0, 0, 1, 1, 1]
    assert max(row["behavior_logprobs"]) <= 0


@pytest.mark.parametrize(
    ("finish", "fixed", "reason", "status"),
    [
        ("stop", False, "eos", "ok"),
        ("length", False, "length", "truncated"),
        ("length", True, "length", "ok"),
        ("abort", False, "aborted", "ok"),
    ],
)
def test_the_engines_own_word_says_why_it_ended(finish: str, fixed: bool, reason: str, status: str) -> None:
    row = tokens_row(ROW, OURS | {"finish_reason": finish}, Facts({}, fixed))
    assert (row["stop_reason"], row["status"]) == (reason, status)


def test_a_completion_that_could_not_be_scored_is_dropped_and_its_group_is_incomplete() -> None:
    output = SimpleNamespace(
        prompt_ids=[4, 5],
        response_ids=[6, 1],
        response_mask=[1, 1],
        response_logprobs=[-0.5, -0.1],
        extra_fields={FIELD: OURS},
    )
    rollout, fate = lost_row(output, {**ROW, VERSION: 3, PUBLISHED: 3}, FACTS)
    assert (rollout["status"], rollout["reward_total"], rollout["group_complete"]) == (
        "infrastructure_error",
        None,
        False,
    )
    assert (fate["fate"], fate["reason"], fate["policy_tokens"]) == ("dropped", "verifier_error", 2)


def test_a_group_is_complete_when_all_of_it_is_there() -> None:
    rows = [{"group_id": "a"}, {"group_id": "b"}, {"group_id": "a"}]
    mark_groups(rows, 2)
    assert [row["group_complete"] for row in rows] == [True, False, True]


def test_a_verdict_keeps_its_components() -> None:
    said = {"score": 1, "rlaxes_components": {"correctness": 1.0}, "rlaxes_text": "7", "t_verify_start": 5}
    columns = verdict_columns(said | {"t_verify_end": 6})
    assert (columns["reward_total"], columns["reward"]["correctness"], columns["text"]) == (1.0, 1.0, "7")


def test_a_fate_counts_policy_tokens() -> None:
    row = tokens_row(ROW, OURS, FACTS)
    assert fate_row(row, "trained", None, 9) == {
        "sample_id": "p1.b3.g2",
        "fate": "trained",
        "reason": None,
        "policy_tokens": 3,
        "t": 9,
    }


class _Wrapped:
    def __init__(self, data: Any) -> None:
        self.data = data


def test_fields_come_wrapped_in_several_ways() -> None:
    assert plain([_Wrapped({"a": 1}), _Wrapped({"a": 2})]) == [{"a": 1}, {"a": 2}]
    assert plain(["x", "y"]) == ["x", "y"]
    data = {"extra_info": [_Wrapped({"prompt_id": "p"})], ROUND: [0], "session_id": [1]}
    assert sample_ids(data) == ["p.b0.g1"]
