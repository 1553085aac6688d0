"""Samples as tensors: right-padded token matrices whose policy tokens are addressed one by one."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor


@dataclass(frozen=True)
class Packed:
    """Sequences of one forward pass.

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


def pack(sequences: Sequence[tuple[list[int], list[int]]], pad: int, device: str) -> Packed:
    """Pack (prompt ids, completion ids) pairs, each with at least one prompt and one completion token."""
    longest = max(len(prompt) + len(completion) for prompt, completion in sequences)
    rows = [[*prompt, *completion] for prompt, completion in sequences]
    real = sum(map(len, rows))
    ids = torch.tensor([row + [pad] * (longest - len(row)) for row in rows])
    index = [
        range(row * longest + len(prompt) - 1, row * longest + len(prompt) + len(completion) - 1)
        for row, (prompt, completion) in enumerate(sequences)
    ]
    return Packed(
        ids=ids.to(device),
        index=torch.tensor(list(chain.from_iterable(index))).to(device),
        targets=torch.tensor(list(chain.from_iterable(completion for _, completion in sequences))).to(device),
        lengths=torch.tensor([len(completion) for _, completion in sequences]).to(device),
        padded_tokens=ids.numel() - real,
    )
