"""Every invariant of MEASURES.md: a record that breaks it is refused by the rule's name."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.contract import rollout_refusals
from harness.contract.writer import to_batch
from tests.ledgers import DECODING, rollout

BROKEN: list[tuple[str, dict[str, Any]]] = [
    ("mask_length", {"policy_mask": [0, 0, 0, 1, 1, 1]}),
    ("logprob_length", {"behavior_logprobs": [-0.5]}),
    ("mask_binary", {"policy_mask": [0, 0, 0, 2, 1, 1, 1]}),
    ("prompt_in_mask", {"policy_mask": [0, 0, 1, 1, 1, 1, 1]}),
    ("logprob_finite", {"behavior_logprobs": [-0.5, -math.inf, -1.0, -0.5]}),
    ("logprob_finite", {"behavior_logprobs": [-0.5, math.nan, -1.0, -0.5]}),
    ("logprob_positive", {"behavior_logprobs": [-0.5, 0.25, -1.0, -0.5]}),
    ("logprob_off_policy", {"policy_mask": [0, 0, 0, 1, 0, 1, 1]}),
    ("logprob_kind", {"behavior_logprob_kind": "guessed"}),
    ("version_missing", {"policy_version": None}),
    ("version_length", {"token_policy_versions": [0, 0, 0]}),
    ("version_falls", {"token_policy_versions": [0, 1, 0, 1]}),
    ("stop_reason", {"stop_reason": "tired"}),
    ("stop_source", {"stop_reason_source": "felt"}),
    ("status", {"status": "fine"}),
    ("decoding_range", {"decoding": DECODING | {"top_p": 0.0}}),
    ("decoding_range", {"decoding": DECODING | {"temperature": -1.0}}),
    ("reward_missing", {"reward_total": None}),
    ("reward_finite", {"reward_total": math.inf}),
    ("group_flag", {"group_complete": False}),
    ("time_order", {"t_generate_start": 10, "t_first_token": 9}),
]


@pytest.mark.parametrize(("rule", "changes"), BROKEN)
def test_a_broken_record_is_refused_by_name(rule: str, changes: dict[str, Any]) -> None:
    bad = rollout(1, **changes)
    refusals = rollout_refusals(to_batch("rollouts", [rollout(0), bad, rollout(2), rollout(3)]))
    assert (rule, bad["sample_id"]) in {(refusal.rule, refusal.sample_id) for refusal in refusals}


def test_a_repeated_sample_is_refused() -> None:
    refusals = rollout_refusals(to_batch("rollouts", [rollout(0), rollout(0)]))
    assert {refusal.rule for refusal in refusals} == {"sample_repeated"}


def test_a_version_above_the_published_one_is_refused() -> None:
    batch = to_batch("rollouts", [rollout(0, policy_version=3), rollout(1, token_policy_versions=[2, 2, 3, 3])])
    assert [refusal.rule for refusal in rollout_refusals(batch, published=2)] == ["version_ahead", "version_ahead"]
    assert rollout_refusals(batch, published=3) == []


def test_an_error_without_a_reward_is_lawful() -> None:
    assert rollout_refusals(to_batch("rollouts", [rollout(0, status="infrastructure_error", reward_total=None)])) == []


def test_an_observation_has_no_logprob_and_stays_out_of_the_mask() -> None:
    turn = rollout(0, policy_mask=[0, 0, 0, 1, 0, 0, 1], behavior_logprobs=[-0.5, None, None, -0.5])
    assert rollout_refusals(to_batch("rollouts", [turn])) == []


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.lists(st.tuples(st.booleans(), st.floats(-50, 0)), min_size=0, max_size=12)),
        min_size=1,
        max_size=8,
    )
)
def test_any_well_formed_batch_is_lawful(shapes: list[tuple[int, list[tuple[bool, float]]]]) -> None:
    rows = []
    for number, (prompt, response) in enumerate(shapes):
        mask = [int(mine) for mine, _ in response]
        logprobs = [value if mine else None for mine, value in response]
        lists = {"prompt_tokens": [1] * prompt, "response_tokens": [2] * len(response)}
        rows.append(rollout(number, **lists, policy_mask=[0] * prompt + mask, behavior_logprobs=logprobs))
    assert rollout_refusals(to_batch("rollouts", rows)) == []


@given(
    st.integers(0, 7),
    st.sampled_from([case for case in BROKEN if case[0] not in {"group_flag", "mask_length", "logprob_length"}]),
)
def test_the_refusal_names_the_record_wherever_it_stands(place: int, case: tuple[str, dict[str, Any]]) -> None:
    rows = [rollout(number) for number in range(8)]
    rows[place] = rollout(place, **case[1])
    refusals = rollout_refusals(to_batch("rollouts", rows))
    assert {refusal.sample_id for refusal in refusals} == {rows[place]["sample_id"]}
