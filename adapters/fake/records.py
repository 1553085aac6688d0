"""The rows that the fake loop writes of a completion."""

from typing import Any

from adapters.fake.truth import BEHAVIOR_LOGPROB, Sample, Truth

Row = dict[str, Any]
_KNOBS = ("temperature", "top_p", "top_k", "min_p", "max_tokens")


def rollout_row(cell: Row, truth: Truth, sample: Sample, stamps: Row) -> Row:
    """A row of `rollouts`; `stamps` are its times, its trace, and the published version that sampled it."""
    decoding = {key: cell["task"][key] for key in _KNOBS} | {"stop": [], "seed": cell["seed"]}
    return {
        "run_id": cell["run_id"],
        "prompt_id": sample.prompt_id,
        "group_id": sample.group_id,
        "sample_id": sample.sample_id,
        "policy_version": sample.version,
        "prompt_tokens": [1] * truth.prompt_tokens,
        "response_tokens": [2] * sample.length,
        "policy_mask": [0] * truth.prompt_tokens + [1] * sample.length,
        "behavior_logprobs": [BEHAVIOR_LOGPROB if sample.known else None] * sample.length,
        "behavior_logprob_kind": truth.logprob_kind,
        "decoding": decoding,
        "reward": {} if sample.reward is None else {"correctness": sample.reward},
        "reward_total": sample.reward,
        "advantage": sample.advantage,
        "stop_reason": "length" if sample.length == cell["task"]["max_tokens"] else "eos",
        "stop_reason_source": "reported",
        "verifier_version": "fake-1",
        "tokenizer_hash": "fake",
        "template_hash": "fake",
        "status": sample.status,
        "group_complete": sample.group_complete,
        "text": f"completion {sample.number}",
        **stamps,
    }


def trained_row(truth: Truth, sample: Sample, step: Row, separate_old: bool) -> Row:
    """A row of `trained`; `step` are the columns that all rows of the step share."""
    lag = step["policy_version"] - sample.version
    log_w = sample.log_ratio + lag * truth.log_ratio_per_lag
    return {
        **step,
        "sample_id": sample.sample_id,
        "trainer_logprobs": [BEHAVIOR_LOGPROB + log_w] * sample.length,
        "old_logprobs": [BEHAVIOR_LOGPROB] * sample.length if separate_old else None,
        "advantage": sample.advantage,
        "policy_tokens": sample.length,
    }


def fate_row(sample: Sample, fate: str, t: int) -> Row:
    """A row of `fates`."""
    reason = {"dropped": sample.lost, "in_flight": "the run's last optimizer step came first"}.get(fate)
    return {"sample_id": sample.sample_id, "fate": fate, "reason": reason, "policy_tokens": sample.length, "t": t}
