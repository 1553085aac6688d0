"""The GRPO loss as pure functions over ragged token vectors: all completions' policy tokens, one after another."""

import math

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


def policy_terms(
    logp: Tensor,
    old: Tensor | None,
    advantages: Tensor,
    clip_low: float,
    clip_high: float,
    log_scale: Tensor | None = None,
) -> Tensor:
    """`-min(w A, clip(w, 1 - clip_low, 1 + clip_high) A) s` a token, with `w = exp(logp - old)` (PPO, arXiv 1707.06347)
    and `s = exp(log_scale)`.

    Args:
        logp: [N] log-probs of the current policy, with gradient.
        old: [N] log-probs of the old policy, or None where it is the current one (w = 1 with logp's gradient).
        advantages: [N], each completion's advantage repeated over its tokens.
        log_scale: [N] without gradient, -inf where a term counts nothing; None for 1.
    """
    log_ratio = logp - (logp.detach() if old is None else old)
    # The minimum is taken between logarithms, and s joined there: of a ratio that overflows and is not the minimum, or
    # is scaled to a number, 0 x inf would leave a gradient that is none.
    lowest = math.log1p(-clip_low) if clip_low < 1.0 else -math.inf
    bounded = torch.where(advantages >= 0, log_ratio.clamp(max=math.log1p(clip_high)), log_ratio.clamp(min=lowest))
    scaled = bounded if log_scale is None else bounded.double() + log_scale
    return -torch.exp(scaled) * advantages


def kl_terms(logp: Tensor, reference: Tensor, log_scale: Tensor | None = None) -> Tensor:
    """The k3 estimate of KL(current || reference) a token, `exp(d) - d - 1` with `d = reference - logp`
    (http://joschu.net/blog/kl-approx.html), times `exp(log_scale)`. Shapes [N]."""
    difference = reference - logp
    if log_scale is None:
        return torch.exp(difference) - difference - 1.0
    return torch.exp(difference.double() + log_scale) - (difference + 1.0) * torch.exp(log_scale)
