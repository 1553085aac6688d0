"""One completion, and the rows of the ledger that it becomes."""

from dataclasses import dataclass
from typing import Any

from harness.task.bundle import Bundle, Prompt
from harness.task.verifier import Verdict

Row = dict[str, Any]


@dataclass
class Sample:
    """A completion of `prompt`: [T] token ids and the log-probs that they were sampled with; `version` is the number of
    optimizer steps in the weights that sampled it."""

    prompt: Prompt
    batch: int
    place: int
    version: int
    tokens: list[int]
    logprobs: list[float]
    ended: bool
    times: dict[str, int]
    text: str = ""
    verdict: Verdict | None = None
    advantage: float | None = None
    group_complete: bool = True

    @property
    def group_id(self) -> str:
        """Its prompt in its batch."""
        return f"{self.prompt.prompt_id}.b{self.batch}"

    @property
    def sample_id(self) -> str:
        """It, in its group."""
        return f"{self.group_id}.g{self.place}"

    @property
    def reward(self) -> float | None:
        """None where the verifier reached no verdict: that is no reward of 0."""
        return self.verdict.reward_total if self.verdict else None


def facts_of(cell: Row, bundle: Bundle) -> Row:
    """The columns of `rollouts` that are the same for the whole run."""
    decoding = {key: cell["task"][key] for key in ("temperature", "top_p", "top_k", "min_p", "max_tokens")}
    return {
        "run_id": cell["run_id"],
        "decoding": {**decoding, "stop": [], "seed": cell["seed"]},
        "verifier_version": bundle.verifier_version,
        "tokenizer_hash": bundle.tokenizer_hash,
        "template_hash": bundle.template_hash,
        "behavior_logprob_kind": "sampled_distribution",
        "stop_reason_source": "reported",
    }


def rollout_row(sample: Sample, facts: Row, fixed: bool) -> Row:
    """A row of `rollouts`; `fixed` says that its length was asked for, so that it was not cut off."""
    prompt, verdict = sample.prompt, sample.verdict
    truncated = not sample.ended and not fixed
    return facts | {
        "prompt_id": prompt.prompt_id,
        "group_id": sample.group_id,
        "sample_id": sample.sample_id,
        "trace_id": f"gen-{sample.batch}",
        "policy_version": sample.version,
        "published_version": sample.version,
        "prompt_tokens": prompt.token_ids,
        "response_tokens": sample.tokens,
        "policy_mask": [0] * len(prompt.token_ids) + [1] * len(sample.tokens),
        "behavior_logprobs": sample.logprobs,
        "reward": verdict.components if verdict else {},
        "reward_total": sample.reward,
        "advantage": sample.advantage,
        "stop_reason": "eos" if sample.ended else "length",
        "status": "infrastructure_error" if sample.reward is None else "truncated" if truncated else "ok",
        "group_complete": sample.group_complete,
        "text": sample.text,
        "t_verify_start": verdict.t_start if verdict else None,
        "t_verify_end": verdict.t_end if verdict else None,
        **sample.times,
    }


def fate_row(sample: Sample, trained: bool, t: int) -> Row:
    """A row of `fates`: exactly one for each sample, and a reason for each that no step consumed."""
    lost = "no_verdict" if sample.reward is None else "no_group" if sample.advantage is None else "run_ended"
    fate = {"fate": "trained", "reason": None} if trained else {"fate": "dropped", "reason": lost}
    return {"sample_id": sample.sample_id, "policy_tokens": len(sample.tokens), "t": t} | fate
