"""The GRPO loss as pure functions over ragged token vectors: all completions' policy tokens, one after another."""

import torch
from torch import Tensor


def token_weights(lengths: Tensor, loss: str) -> Tensor:
    """What each token's term counts in the loss of a whole minibatch; the weights sum to 1.

    Args:
        lengths: [S] int64, policy tokens of each completion, all at least 1.
        loss: `token_mean` (every token alike, DAPO arXiv 2503.14476) or `sequence_mean` (mean over completions of the
            mean over their tokens, GRPO arXiv 2402.03300).

    Returns:
        [sum(lengths)] float64; the same for any split into micro-batches, as they are taken over all of them.
    """
    if loss == "token_mean":
        total = int(lengths.sum())
        return torch.full((total,), 1.0 / total, dtype=torch.float64, device=lengths.device)
    each = 1.0 / (lengths.double() * len(lengths))
    return torch.repeat_interleave(each, lengths)


def policy_terms(logp: Tensor, old: Tensor | None, advantages: Tensor, clip_low: float, clip_high: float) -> Tensor:
    """`-min(w A, clip(w, 1 - clip_low, 1 + clip_high) A)` a token, with `w = exp(logp - old)` (PPO, arXiv 1707.06347).

    Args:
        logp: [N] log-probs of the current policy, with gradient.
        old: [N] log-probs of the old policy, or None where it is the current one (w = 1 with logp's gradient).
        advantages: [N], each completion's advantage repeated over its tokens.
    """
    ratio = torch.exp(logp - (logp.detach() if old is None else old))
    clipped = ratio.clamp(1.0 - clip_low, 1.0 + clip_high)
    return -torch.minimum(ratio * advantages, clipped * advantages)


def kl_terms(logp: Tensor, reference: Tensor) -> Tensor:
    """The k3 estimate of KL(current || reference) a token, `exp(d) - d - 1` with `d = reference - logp`
    (http://joschu.net/blog/kl-approx.html). Shapes [N]."""
    difference = reference - logp
    return torch.exp(difference) - difference - 1.0
