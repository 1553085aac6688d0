"""A sample on its way through the loop, and the rows of the ledger that it becomes [12.1.2]. Standard library only."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from adapters.reference.advantages import group_advantages
from adapters.reference.engine import Completion
from adapters.reference.messages import Answer, Request
from adapters.reference.settings import Objective
from harness.task.bundle import Bundle, Prompt
from harness.task.verifier import Verdict


@dataclass
class Sample:
    """One completion of one prompt; what is None has not been reached yet (`old`, `reference`: is not needed).

    Attributes:
        policy_version: optimizer steps applied to the weights that sampled it, the oldest where several did.
        published_version: the publication that brought those weights to the engine.
        old, reference: [T] log-probs of the old and of the reference policy, None where the policy did not sample.
    """

    sample_id: str
    group_id: str
    trace_id: str
    prompt: Prompt
    completion: Completion
    policy_version: int
    published_version: int
    truncated: bool
    text: str = ""
    verdict: Verdict | None = None
    advantage: float | None = None
    group_complete: bool = True
    old: list[float | None] | None = None
    reference: list[float | None] | None = None

    @property
    def reward(self) -> float | None:
        """The total reward; None where the verifier reached no verdict."""
        return None if self.verdict is None else self.verdict.reward_total

    @property
    def status(self) -> str:
        """The record's status: an unreached verdict is the infrastructure's failure, not a wrong answer."""
        if self.reward is None:
            return "infrastructure_error"
        return "truncated" if self.truncated else "ok"

    def drop_reason(self, mask_truncated: bool) -> str | None:
        """Why the sample must not be trained on, or None."""
        if self.reward is None:
            return "infrastructure_error"
        if self.advantage is None:
            return "no_other_verdict_in_group"
        return "truncated" if mask_truncated and self.truncated else None


def samples_of(answer: Answer, request: Request, batch: int, stop_at_eos: bool) -> list[Sample]:
    """The samples of an answered request, groups one after another."""
    return [
        Sample(
            sample_id=f"{prompt.prompt_id}.b{batch}.g{index}",
            group_id=f"{prompt.prompt_id}.b{batch}",
            trace_id=request.trace_id,
            prompt=prompt,
            completion=completion,
            policy_version=answer.policy_version,
            published_version=answer.published_version,
            truncated=stop_at_eos and completion.stop_reason == "length",
        )
        for prompt, group in zip(request.prompts, answer.groups, strict=True)
        for index, completion in enumerate(group)
    ]


def assign_advantages(samples: Sequence[Sample], objective: Objective) -> None:
    """Fill in advantages, group by group. A sample with no verdict leaves its group incomplete; the others are then
    compared among themselves, if at least two are left."""
    for _, members in groupby(samples, key=lambda sample: sample.group_id):
        group = list(members)
        scored = [sample for sample in group if sample.reward is not None]
        for sample in group:
            sample.group_complete = len(scored) == len(group)
        if len(scored) < 2:
            continue
        rewards = [sample.reward for sample in scored if sample.reward is not None]
        values = group_advantages(rewards, objective.advantage_std, objective.std_ddof, objective.advantage_eps)
        for sample, value in zip(scored, values, strict=True):
            sample.advantage = value


def rollout_row(sample: Sample, bundle: Bundle, run_id: str, decoding: dict[str, Any]) -> dict[str, Any]:
    """The sample as a row of the `rollouts` table."""
    completion, verdict = sample.completion, sample.verdict
    return {
        "run_id": run_id,
        "prompt_id": sample.prompt.prompt_id,
        "group_id": sample.group_id,
        "sample_id": sample.sample_id,
        "trace_id": sample.trace_id,
        "policy_version": sample.policy_version,
        "token_policy_versions": completion.versions,
        "published_version": sample.published_version,
        "prompt_tokens": sample.prompt.token_ids,
        "response_tokens": completion.tokens,
        "policy_mask": [0] * len(sample.prompt.token_ids) + completion.policy_mask,
        "behavior_logprobs": completion.logprobs,
        "behavior_logprob_kind": "sampled_distribution",
        "decoding": decoding,
        "reward": verdict.components if verdict else {},
        "reward_total": sample.reward,
        "advantage": sample.advantage,
        "stop_reason": completion.stop_reason,
        "stop_reason_source": completion.stop_source,
        "verifier_version": bundle.verifier_version,
        "tokenizer_hash": bundle.tokenizer_hash,
        "template_hash": bundle.template_hash,
        "status": sample.status,
        "group_complete": sample.group_complete,
        "text": sample.text,
        "t_queued": completion.t_queued,
        "t_generate_start": completion.t_start,
        "t_first_token": completion.t_first,
        "t_generate_end": completion.t_end,
        "t_verify_start": verdict.t_start if verdict else None,
        "t_verify_end": verdict.t_end if verdict else None,
    }


def fate_row(sample: Sample, fate: str, reason: str | None) -> dict[str, Any]:
    """What became of the sample, as a row of the `fates` table."""
    return {
        "sample_id": sample.sample_id,
        "fate": fate,
        "reason": reason,
        "policy_tokens": sample.completion.policy_tokens,
        "t": time.perf_counter_ns(),
    }
