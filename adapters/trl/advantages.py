"""TRL's group advantages (trl/trainer/grpo_trainer.py): constants that no argument sets, checked by our own."""

from collections.abc import Sequence

import numpy as np

from harness.probe.hooks import HookDrift

STD_DDOF = 1
STD_EPS = 1e-4
TOLERANCE = 1e-4
"""TRL computes in float32: rewards near a group's mean lose digits."""


def expected_advantages(rewards: Sequence[float | None], group_size: int, *, scaled: bool) -> list[float]:
    """(r - mean) / (std + 1e-4) in each group of `group_size` rewards, or r - mean where not `scaled`.

    An unscored completion (None) counts in neither mean nor std and has the advantage 0; so has the only scored one of
    its group where `scaled`, since it has no std.
    """
    found: list[float] = []
    for start in range(0, len(rewards), group_size):
        group = np.array([np.nan if r is None else r for r in rewards[start : start + group_size]])
        scored = group[~np.isnan(group)]
        advantages = group - (scored.mean() if len(scored) else np.nan)
        if scaled:
            advantages = advantages / ((scored.std(ddof=STD_DDOF) if len(scored) > STD_DDOF else np.nan) + STD_EPS)
        found += np.nan_to_num(advantages).tolist()
    return found


def check_advantages(
    rewards: Sequence[float | None], advantages: Sequence[float], group_size: int, *, scaled: bool
) -> None:
    """Raise HookDrift if TRL computed other advantages than its source has been read to compute."""
    expected = expected_advantages(rewards, group_size, scaled=scaled)
    if not np.allclose(expected, advantages, atol=TOLERANCE, rtol=TOLERANCE):
        worst = int(np.abs(np.array(expected) - np.array(advantages)).argmax())
        formula = f"(r - mean) / (std + {STD_EPS}), ddof {STD_DDOF}" if scaled else "r - mean"
        found = f"completion {worst} has {advantages[worst]}, not {expected[worst]}"
        raise HookDrift(f"hook drift: TRL's advantages are not {formula}: {found}")
