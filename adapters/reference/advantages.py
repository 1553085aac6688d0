"""Group-relative advantages (GRPO, arXiv 2402.03300, equation 3; without the std: arXiv 2503.20783)."""

import math
from collections.abc import Sequence


def group_advantages(rewards: Sequence[float], std: str, ddof: int, eps: float) -> list[float]:
    """Advantages of one group's completions: `(r - mean) / (s + eps)`, or `r - mean` where `std` is `none`.

    Args:
        rewards: total rewards of the completions that have one, at least one; a lone one has advantage 0.
        std: `group` or `none`.
        ddof: `s` divides by `n - ddof`.
        eps: added to `s`, so that a group of equal rewards gives zeros.
    """
    mean = math.fsum(rewards) / len(rewards)
    centred = [reward - mean for reward in rewards]
    if std == "none":
        return centred
    deviation = math.sqrt(math.fsum(value * value for value in centred) / max(len(rewards) - ddof, 1))
    return [value / (deviation + eps) for value in centred]
