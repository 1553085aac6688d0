"""Samples as tensors: right-padded token matrices whose policy tokens are addressed one by one."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor


@dataclass(frozen=True)
class Packed:
    """Sequences of one forward pass. What the policy did not sample is read as context and addressed nowhere.

    Attributes:
        ids: [B, L] int64, right-padded. Behind a causal mask no real token sees padding, so none needs a mask.
        index: [N] int64 into the B*L positions: the position whose output predicts each policy token.
        targets: [N] int64, the policy tokens themselves, completion after completion.
        lengths: [B] int64, policy tokens of each completion; they sum to N.
        padded_tokens: padding positions computed on.
    """

    ids: Tensor
    index: Tensor
    targets: Tensor
    lengths: Tensor
    padded_tokens: int

    @property
    def policy_tokens(self) -> int:
        """N, the policy tokens."""
        return len(self.targets)

    @property
    def context_tokens(self) -> int:
        """Tokens of prompts and observations."""
        return self.ids.numel() - self.padded_tokens - self.policy_tokens


def pack(
    sequences: Sequence[tuple[list[int], list[int]]],
    pad: int,
    device: str,
    masks: Sequence[list[int]] | None = None,
) -> Packed:
    """Pack (prompt ids, completion ids) pairs, each with at least one prompt and one policy token; `masks` has 1 for a
    completion's policy tokens and 0 for its observations, None where there are no observations."""
    longest = max(len(prompt) + len(completion) for prompt, completion in sequences)
    rows = [[*prompt, *completion] for prompt, completion in sequences]
    real = sum(map(len, rows))
    ids = torch.tensor([row + [pad] * (longest - len(row)) for row in rows])
    masks = masks or [[1] * len(completion) for _, completion in sequences]
    places = [
        [len(prompt) + place for place, sampled in enumerate(mask) if sampled]
        for (prompt, _), mask in zip(sequences, masks, strict=True)
    ]
    index = [[row * longest + place - 1 for place in each] for row, each in enumerate(places)]
    targets = [[row[place] for place in each] for row, each in zip(rows, places, strict=True)]
    return Packed(
        ids=ids.to(device),
        index=torch.tensor(list(chain.from_iterable(index))).to(device),
        targets=torch.tensor(list(chain.from_iterable(targets))).to(device),
        lengths=torch.tensor([len(each) for each in places]).to(device),
        padded_tokens=ids.numel() - real,
    )


def spread(values: Sequence[float], mask: Sequence[int]) -> list[float | None]:
    """One value a policy token as one a token: None where the policy did not sample."""
    rest = iter(values)
    return [next(rest) if sampled else None for sampled in mask]
