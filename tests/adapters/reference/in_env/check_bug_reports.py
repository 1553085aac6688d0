"""The reference loop against the bug reports that concern its tensors: A1, A2, A3 and A20 of tests/bug_reports."""

import random
from dataclasses import replace

import pytest
import torch

from adapters.reference.microbatches import assemble, packed_of
from adapters.reference.policy import policy_logprobs, sampled_logprobs
from adapters.reference.ranks import Alone
from tests.adapters.reference.in_env import tiny

VOCAB = 24
DECODINGS = [
    {"temperature": 0.6},
    {"temperature": 1.7},
    {"top_p": 0.8},
    {"top_k": 5, "temperature": 0.7},
    {"min_p": 0.1},
    {"top_p": 0.95, "top_k": 20},
]


@pytest.mark.parametrize("changes", DECODINGS, ids=str)
def test_a2_a3_the_engine_s_logprobs_are_of_a_distribution(changes: dict[str, float]) -> None:
    """prime-rl#697, trl#6789: over the whole vocabulary the probabilities that are recorded add up to 1."""
    torch.manual_seed(3)
    logits = torch.randn(1, VOCAB) * 2
    decoding = replace(tiny.DECODING, **changes)  # type: ignore[arg-type]
    each = sampled_logprobs(logits.expand(VOCAB, VOCAB), torch.arange(VOCAB), decoding)
    assert each.exp().sum().item() == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("temperature", [0.6, 0.7, 0.85, 1.0, 1.5, 2.0])
def test_a1_trainer_and_engine_agree_at_a_temperature(temperature: float) -> None:
    """trl#4159, verl#4162: the same weights give the same log-probabilities on both sides, so that the ratio is 1."""
    module, draw = tiny.model(VOCAB), random.Random(5)
    samples = [tiny.sample(number, VOCAB, draw) for number in range(4)]
    packed = packed_of(samples, 0, "cpu")
    with torch.no_grad():
        trainer = policy_logprobs(module, packed, temperature)
        logits = module(input_ids=packed.ids).logits.flatten(0, 1)[packed.index]
        engine = sampled_logprobs(logits, packed.targets, replace(tiny.DECODING, temperature=temperature))
    assert (trainer - engine).abs().max().item() < 1e-5


@pytest.mark.parametrize("poison", [1, 2, 5, 11, 17, 23])
def test_a20_padding_reaches_neither_advantages_nor_logprobs(poison: int) -> None:
    """trl#7024: whatever stands in the padding, what is trained on is the same, one value a policy token."""
    module, draw = tiny.model(VOCAB), random.Random(7)
    samples = [tiny.sample(number, VOCAB, draw, observed=0.3) for number in range(6)]
    (clean,), (poisoned,) = (assemble(samples, tiny.SETTINGS, pad, Alone()) for pad in (0, poison))
    assert clean.packed.padded_tokens > 0
    assert not torch.equal(clean.packed.ids, poisoned.packed.ids)
    tokens = sum(sample.completion.policy_tokens for sample in samples)
    assert clean.advantages.shape == clean.weights.shape == (tokens,)
    assert torch.equal(clean.advantages, poisoned.advantages)
    assert torch.equal(clean.weights, poisoned.weights)
    with torch.no_grad():
        one, other = (policy_logprobs(module, batch.packed, 1.0) for batch in (clean, poisoned))
    assert torch.allclose(one, other, atol=1e-6)
