"""What a row stores of a completion's tokens, as numbers that rules ask about: lists of one element a token [12.1.2].

A dump of rollouts has them under one of a few names; a row that has none of them gives nothing.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from harness.audit.quantities import Observation, Where

LOGPROBS = ("behavior_logprobs", "rollout_log_probs", "sampling_logprobs", "logprobs")
MASKS = ("policy_mask", "response_mask", "completion_mask", "loss_mask", "mask")
ADVANTAGES = ("advantages",)
SAMPLED = ("sampled_tokens", "sampled_ids")
STORED = ("response_tokens", "completion_ids", "response_ids")
NUMBERS = (int, float)


def token_observations(row: Mapping[str, Any], file: str, line: int) -> Iterator[Observation]:
    """Log-probabilities and advantages by what the mask says of their tokens, and ids that changed on their way.

    A mask that is longer (prompt and response together) is taken from its end; without one, every token counts as the
    policy's.
    """
    mask = _list(row, MASKS)
    for names, on, off in ((LOGPROBS, "logprob", "off_mask_logprob"), (ADVANTAGES, "", "off_mask_advantage")):
        key, values = _list(row, names)
        where = Where(file, line, key)
        for value, counts in zip(values, _aligned(mask[1], len(values)), strict=True):
            quantity = on if counts else off
            if quantity and isinstance(value, NUMBERS) and math.isfinite(value):
                yield Observation(quantity, float(value), where)
    (key, sampled), (_, stored) = _list(row, SAMPLED), _list(row, STORED)
    if sampled and stored:
        changed = sum(a != b for a, b in zip(sampled, stored, strict=False)) + abs(len(sampled) - len(stored))
        yield Observation("ids_changed", float(changed), Where(file, line, key))


def _list(row: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, list[Any]]:
    return next(((name, row[name]) for name in names if isinstance(row.get(name), list)), ("", []))


def _aligned(mask: list[Any], length: int) -> list[bool]:
    """One flag a token; a mask that is too short says nothing about any of them."""
    return [bool(flag) for flag in mask[len(mask) - length :]] if len(mask) >= length > 0 else [True] * length
