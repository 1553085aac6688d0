"""The trained module: loading it, and its log-probs of given completions."""

from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AutoModelForCausalLM

from adapters.reference.batches import Packed, pack
from adapters.reference.settings import Decoding
from harness.errors import SystemFailure

HEAD_TOLERANCE = 1e-3
SELECTED = "selected_logits"
"""The method that a sharded module calls `selected_logits` by."""


def load_policy(folder: Path, device: str) -> Any:
    """The bundle's checkpoint in float32, without dropout (`eval`), on `device`."""
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="sdpa", local_files_only=True
    )
    return model.to(device).eval()


def policy_logits(model: Any, packed: Packed) -> Tensor:
    """[N, V] float32 logits that predict each policy token. The output layer sees only these positions: prompts and
    padding cost nothing there, which is a fifth of the work on a small model with a large vocabulary."""
    # A sharded module gathers its weights around its own methods only.
    logits: Tensor = (getattr(model, SELECTED, None) or partial(selected_logits, model))(packed.ids, packed.index)
    return logits


def selected_logits(model: Any, ids: Tensor, index: Tensor) -> Tensor:
    """See `policy_logits`: `ids` is [B, L], `index` [N] into its positions."""
    hidden = model.base_model(input_ids=ids, use_cache=False).last_hidden_state
    chosen = hidden.flatten(0, 1).index_select(0, index)
    logits: Tensor = model.get_output_embeddings()(chosen).float()
    return logits


def policy_logprobs(model: Any, packed: Packed, temperature: float) -> Tensor:
    """[N] float32 log-probs of the policy tokens under softmax(logits / temperature), with gradient."""
    logits = policy_logits(model, packed)
    if temperature != 1.0:
        logits = logits / temperature
    return -functional.cross_entropy(logits, packed.targets, reduction="none")


def check_output_layer(model: Any, prompt: list[int], device: str) -> None:
    """Hold `policy_logits` to the model's own forward pass: some architectures scale or cap their logits.

    Raises:
        SystemFailure: they differ.
    """
    packed = pack([(prompt[:1], prompt[1:])], pad=0, device=device)
    with torch.no_grad():
        whole = model(input_ids=packed.ids, use_cache=False).logits[0, :-1].float()
        gap = (policy_logits(model, packed) - whole).abs().max().item()
    if not gap <= HEAD_TOLERANCE:
        kind = type(model).__name__
        raise SystemFailure(f"{kind} does more to its logits than its output layer (they differ by {gap:.3g})")


def sampled_logprobs(logits: Tensor, targets: Tensor, decoding: Decoding) -> Tensor:
    """[N] log-probs of `targets` under the distribution that `decoding` really draws from: after temperature, top-k,
    top-p and min-p, in transformers' order, renormalised. -inf for a token that was cut away.

    Args:
        logits: [N, V] as they leave the model.
        targets: [N] int64.
    """
    scores = (logits / decoding.temperature).log_softmax(-1)
    if decoding.top_k:
        least = scores.topk(min(decoding.top_k, scores.shape[-1]), dim=-1).values[:, -1:]
        scores = scores.masked_fill(scores < least, -torch.inf).log_softmax(-1)
    if decoding.top_p < 1.0:
        ascending, order = scores.sort(dim=-1)
        cut = ascending.exp().cumsum(-1) <= 1.0 - decoding.top_p
        cut[:, -1] = False
        scores = scores.masked_fill(cut.scatter(-1, order, cut), -torch.inf).log_softmax(-1)
    if decoding.min_p:
        least = scores.max(dim=-1, keepdim=True).values + torch.tensor(decoding.min_p).log()
        scores = scores.masked_fill(scores < least, -torch.inf).log_softmax(-1)
    return scores.gather(-1, targets[:, None])[:, 0]
