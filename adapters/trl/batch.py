"""One generated batch: what is known of it, and the rows of the ledger that it becomes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from adapters.trl.settings import batch_size

Row = dict[str, Any]
Times = dict[str, int]


@dataclass
class GeneratedBatch:
    """A batch of B completions between generation and the last step that trains on it.

    Attributes:
        prompt_ids: the bundle's id of each row's prompt.
        logprobs: behaviour log-probs, one array a row, or None where the engine gave none.
        verdicts: what the verifier said of each row.
        unended: rows without a sampled end of sequence; truncated: those of them that the token limit cut off (none
            where every completion is to have that length); masked: those that TRL takes out of the loss.
        untrained: rows that no finished step has trained on yet.
    """

    number: int
    policy_version: int
    published_version: int
    prompt_ids: list[str]
    attempt: int = 0
    prompt_tokens: list[list[int]] = field(default_factory=list)
    response_tokens: list[list[int]] = field(default_factory=list)
    logprobs: Sequence[Any] | None = None
    logprob_kind: str = "sampled_distribution"
    texts: list[str] = field(default_factory=list)
    verdicts: Sequence[Any] = ()
    advantages: list[float] = field(default_factory=list)
    unended: list[bool] = field(default_factory=list)
    truncated: list[bool] = field(default_factory=list)
    masked: list[bool] = field(default_factory=list)
    times: Times = field(default_factory=dict)
    untrained: set[int] = field(default_factory=set)
    group_ids: list[str] = field(init=False)
    sample_ids: list[str] = field(init=False)

    def __post_init__(self) -> None:
        """Name groups and samples: the i-th completion of a prompt in this batch is its i-th sample."""
        seen: dict[str, int] = {}
        self.group_ids, self.sample_ids = [], []
        for prompt_id in self.prompt_ids:
            index = seen[prompt_id] = seen.get(prompt_id, -1) + 1
            self.group_ids.append(f"{prompt_id}.b{self.number}")
            self.sample_ids.append(f"{prompt_id}.b{self.number}.g{index}")

    @property
    def trace_id(self) -> str:
        """The id that spans of this batch carry."""
        return trace_id(self.number, self.attempt)

    def rollout_rows(self, facts: Mapping[str, Any]) -> list[Row]:
        """The rows of the `rollouts` table; `facts` are the columns that are the same for every row of a run."""
        common = {
            **facts,
            "trace_id": self.trace_id,
            "policy_version": self.policy_version,
            "published_version": self.published_version,
            "behavior_logprob_kind": self.logprob_kind,
            **self.times,
        }
        failed = {group for group, v in zip(self.group_ids, self.verdicts, strict=True) if v.status != "ok"}
        return [
            common | self._tokens(row) | self._outcome(row) | {"group_complete": self.group_ids[row] not in failed}
            for row in range(len(self.sample_ids))
        ]

    def _tokens(self, row: int) -> Row:
        prompt, response = self.prompt_tokens[row], self.response_tokens[row]
        return {
            "prompt_id": self.prompt_ids[row],
            "group_id": self.group_ids[row],
            "sample_id": self.sample_ids[row],
            "prompt_tokens": prompt,
            "response_tokens": response,
            "policy_mask": [0] * len(prompt) + [1] * len(response),
            "behavior_logprobs": [None] * len(response) if self.logprobs is None else self.logprobs[row],
            "text": self.texts[row],
        }

    def _outcome(self, row: int) -> Row:
        verdict = self.verdicts[row]
        status = "truncated" if self.truncated[row] else "ok"
        return {
            "reward": verdict.components,
            "reward_total": verdict.reward_total if verdict.status == "ok" else None,
            "advantage": self.advantages[row],
            "stop_reason": "length" if self.unended[row] else "eos",
            "stop_reason_source": "derived",
            "status": status if verdict.status == "ok" else "infrastructure_error",
            "t_verify_start": verdict.t_start,
            "t_verify_end": verdict.t_end,
        }

    def fate_rows(self, rows: Sequence[int], fate: str, reason: str | None, t: int) -> list[Row]:
        """Rows of the `fates` table."""
        tokens = [len(self.response_tokens[row]) for row in rows]
        return [
            {"sample_id": self.sample_ids[row], "fate": fate, "reason": reason, "policy_tokens": count, "t": t}
            for row, count in zip(rows, tokens, strict=True)
        ]

    def trained_rows(
        self,
        rows: Sequence[int],
        step: Mapping[str, Any],
        trainer: npt.NDArray[np.float32],
        old: npt.NDArray[np.float32] | None,
    ) -> list[Row]:
        """Rows of the `trained` table for a micro-batch; a completion that TRL masks as truncated is not trained on.

        Args:
            rows: batch rows, in the order of the micro-batch.
            step: batch_id, step, epoch, policy_version, published_version, t_step_start.
            trainer: log-probs of the training forward pass, micro-batch x padded completion length.
            old: those of the separate old policy, or None where TRL has none (the ratio is 1 by construction).
        """
        return [
            {
                **step,
                "sample_id": self.sample_ids[row],
                "trainer_logprobs": trainer[at][: len(self.response_tokens[row])],
                "old_logprobs": None if old is None else old[at][: len(self.response_tokens[row])],
                "advantage": self.advantages[row],
                "policy_tokens": len(self.response_tokens[row]),
            }
            for at, row in enumerate(rows)
            if not self.masked[row]
        ]


def trace_id(number: int, attempt: int) -> str:
    """What ties a batch's spans and records together; an attempt's own, as it may generate it anew."""
    return f"gen-{number}" + (f"~{attempt}" if attempt else "")


def order_of_prompts(task: Mapping[str, Any], batches: int, available: int) -> list[int]:
    """Indices into the bundle's prompts, in file order and round again, for `batches` generated batches."""
    wanted = batches * (batch_size(task) // int(task["group_size"]))
    return [index % available for index in range(wanted)]
