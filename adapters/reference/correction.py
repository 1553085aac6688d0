"""Importance correction of records that another policy sampled [12.4.2, 12.4.4]: stop-gradient weights on loss terms.

With `w = pi / mu` of the trainer's policy at a batch's first step against the behaviour policy, a token's term counts
`c(w)` times: `min(w, cap)` with `clip` (truncated importance sampling, Ionides 2008; verl `rollout_is`, TRL
`vllm_importance_sampling_correction`), and `w`, or nothing above the cap, with `mask` (verl `rollout_rs`). What a
masked term would have counted is not given to others. `w` is a token's own or its whole sequence's, which is unbiased
where the cap is infinite. All in logarithms and float64: `log w` may be in the thousands.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from adapters.reference.settings import Staleness


def log_importance(policy: Tensor, behavior: Tensor, lengths: Tensor, level: str) -> Tensor:
    """[N] float64 `log w` for each policy token.

    Args:
        policy, behavior: [N] log-probs of the tokens, completion after completion.
        lengths: [S] int64, policy tokens of each completion; they sum to N.
        level: `token`, or `sequence`: the completion's sum, repeated over its tokens.
    """
    difference = policy.detach().double() - behavior.double()
    if level == "token":
        return difference
    sums = torch.stack([part.sum() for part in difference.split(lengths.tolist())])
    return sums.repeat_interleave(lengths)


@dataclass(frozen=True)
class Correction:
    """How records are weighted; `kind` is `clip` or `mask`, `cap` is of `w` and may be infinite."""

    kind: str
    level: str
    cap: float

    @classmethod
    def of(cls, asked: Staleness) -> "Correction | None":
        """The correction that the settings ask for, None for none."""
        return None if asked.correction == "none" else cls(asked.correction, asked.level, asked.cap)

    def log_weights(self, policy: Tensor, behavior: Tensor, lengths: Tensor) -> Tensor:
        """[N] float64 `log c(w)`, -inf where a term counts nothing; shapes as in `log_importance`."""
        found = log_importance(policy, behavior, lengths, self.level)
        limit = math.log(self.cap)
        if self.kind == "clip":
            return found.clamp(max=limit)
        return found.masked_fill(found > limit, -math.inf)
