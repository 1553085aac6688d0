"""A minibatch as the forward passes of one trainer rank."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from adapters.reference.batches import Packed, pack
from adapters.reference.objective import token_weights
from adapters.reference.ranks import Ranks
from adapters.reference.samples import Sample
from adapters.reference.settings import Settings


@dataclass(frozen=True)
class Share:
    """Samples of one forward pass; `counted` is False where they are there only for the rank to take part in it."""

    samples: list[Sample]
    counted: bool


@dataclass(frozen=True)
class MicroBatch:
    """One forward and backward pass; all tensors but `packed` are [N], one value a policy token.

    Attributes:
        weights: float64, what each token counts in the loss of the whole minibatch; 0 where the pass is not `counted`.
        behavior: log-probs that the tokens were sampled with.
        old, reference: log-probs, or None where the objective needs none.
    """

    samples: list[Sample]
    counted: bool
    packed: Packed
    advantages: Tensor
    weights: Tensor
    behavior: Tensor
    old: Tensor | None
    reference: Tensor | None


def shares(samples: Sequence[Sample], parts: int, ranks: Ranks) -> list[Share]:
    """This rank's part of the samples in `parts` forward passes, fewer where there are not enough. Samples of like
    length share a pass, so that little is padded, and so do the ranks' passes at one time, so that none waits long.

    Every rank makes as many passes, for a sharded module is gathered by all: where a rank has no samples left, it
    computes on another's.
    """
    ordered = sorted(samples, key=lambda sample: len(sample.prompt.token_ids) + len(sample.completion.tokens))
    pieces = [piece.tolist() for piece in torch.arange(len(ordered)).tensor_split(parts * ranks.size) if len(piece)]
    cut = [[ordered[index] for index in piece] for piece in pieces]
    at_once = [cut[first : first + ranks.size] for first in range(0, len(cut), ranks.size)]
    return [Share(each[ranks.rank], True) if ranks.rank < len(each) else Share(each[0][:1], False) for each in at_once]


def packed_of(samples: Sequence[Sample], pad: int, device: str) -> Packed:
    """The samples as one forward pass."""
    pairs = [(sample.prompt.token_ids, sample.completion.tokens) for sample in samples]
    return pack(pairs, pad, device, [sample.completion.policy_mask for sample in samples])


def assemble(minibatch: Sequence[Sample], settings: Settings, pad: int, ranks: Ranks) -> list[MicroBatch]:
    """This rank's passes over a minibatch, which all ranks have whole."""
    lengths = [sample.completion.policy_tokens for sample in minibatch]
    each = token_weights(torch.tensor(lengths), settings.objective.loss).split(lengths)
    weights = {sample.sample_id: weight for sample, weight in zip(minibatch, each, strict=True)}
    return [_micro_batch(share, weights, settings, pad) for share in shares(minibatch, settings.micro_batches, ranks)]


def _micro_batch(share: Share, weights: dict[str, Tensor], settings: Settings, pad: int) -> MicroBatch:
    samples, device = share.samples, settings.device
    packed = packed_of(samples, pad, device)
    behavior = _joined([sample.completion.logprobs for sample in samples], device)
    values = torch.tensor([sample.advantage for sample in samples], dtype=torch.float32)
    return MicroBatch(
        samples=samples,
        counted=share.counted,
        packed=packed,
        advantages=values.to(device).repeat_interleave(packed.lengths),
        weights=torch.cat([weights[sample.sample_id] for sample in samples]).to(device) * share.counted,
        behavior=behavior,
        old=behavior if settings.logprobs != "recompute" else _optional([sample.old for sample in samples], device),
        reference=_optional([sample.reference for sample in samples], device),
    )


def _optional(rows: list[list[float | None] | None], device: str) -> Tensor | None:
    present = [row for row in rows if row is not None]
    return _joined(present, device) if present else None


def _joined(rows: Sequence[Sequence[float | None]], device: str) -> Tensor:
    """[N] float32, observations left out."""
    return torch.tensor(
        [value for row in rows for value in row if value is not None], dtype=torch.float32, device=device
    )
