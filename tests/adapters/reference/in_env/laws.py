"""What every engine has to hold, whichever it is."""

import math
from itertools import pairwise
from typing import Any

import torch

from adapters.reference.engine import Engine, Generation
from adapters.reference.settings import Decoding
from tests.adapters.reference.in_env import tiny

VOCAB = 12
GATE = 1e-4
PROMPT = [3, 5, 7, 9, 2]
DECODINGS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.6},
    {"top_k": 4},
    {"top_p": 0.7},
    {"min_p": 0.1},
    {"temperature": 1.4, "top_k": 7, "top_p": 0.8},
]


def exact_distribution(module: Any, prompt: list[int], decoding: Decoding) -> list[float]:
    """The first token's distribution from the definitions, in float64 and plain Python."""
    with torch.no_grad():
        logits = module(input_ids=torch.tensor([prompt])).logits[0, -1].double().tolist()
    weights = [math.exp(logit / decoding.temperature) for logit in logits]
    order = sorted(range(len(weights)), key=lambda token: -weights[token])
    kept = order[: decoding.top_k] if decoding.top_k else order
    total, seen, nucleus = sum(weights[token] for token in kept), 0.0, []
    for token in kept:
        if seen >= decoding.top_p * total:
            break
        nucleus.append(token)
        seen += weights[token]
    kept = [token for token in nucleus if weights[token] >= decoding.min_p * weights[order[0]]]
    total = sum(weights[token] for token in kept)
    return [weights[token] / total if token in kept else 0.0 for token in range(len(weights))]


def check_sampling(engine: Engine, module: Any, decoding: Decoding, rounds: int = 5) -> None:
    """A chi-square test of the first tokens against the exact distribution and each one's log-prob."""
    expected = exact_distribution(module, PROMPT, decoding)
    counts = [0] * len(expected)
    for _ in range(rounds):
        for group in engine.generate([PROMPT] * 4, 200, 1).groups:
            for completion in group:
                counts[completion.tokens[0]] += 1
                said = completion.logprobs[0]
                assert said is not None
                assert expected[completion.tokens[0]] > 0.0, "a token outside the support was sampled"
                assert abs(said - math.log(expected[completion.tokens[0]])) <= GATE
    drawn = sum(counts)
    cells = [(count, drawn * p) for count, p in zip(counts, expected, strict=True) if drawn * p >= 5]
    statistic = sum((count - mean) ** 2 / mean for count, mean in cells)
    freedom = len(cells) - 1
    assert drawn == rounds * 800
    # Mean plus four standard deviations of the chi-square distribution, and a little for its skew.
    assert statistic <= freedom + 4 * math.sqrt(2 * freedom) + 8


def check_log_probs(generation: Generation, prompts: list[list[int]], module: Any, temperature: float) -> None:
    """With the KV cache or without, the log-probs are the same (float32 gate)."""
    for prompt, group in zip(prompts, generation.groups, strict=True):
        for completion in group:
            expected = tiny.full_forward(module, prompt, completion.tokens, temperature)
            assert (torch.tensor(completion.logprobs) - expected).abs().max().item() <= GATE


def check_phases(generation: Generation) -> None:
    """Phases lie end to end and count every token once; a completion's times are in order."""
    phases = generation.phases
    assert all(before.t_end == after.t_start for before, after in pairwise(phases))
    completions = [completion for group in generation.groups for completion in group]
    assert sum(phase.output_tokens for phase in phases) == sum(len(c.tokens) for c in completions)
    assert {phase.stage for phase in phases} <= {"prefill", "decode", "generate"}
    assert phases[0].stage == "prefill"
    for completion in completions:
        assert completion.t_queued <= completion.t_start <= completion.t_first <= completion.t_end
        assert completion.t_end <= phases[-1].t_end


def check_ends(generation: Generation, stop: bool) -> None:
    """A sampled end-of-sequence token ends a completion and belongs to it; on the fixed-length track it ends none."""
    completions = [completion for group in generation.groups for completion in group]
    assert any(tiny.EOS in completion.tokens for completion in completions), "the check sees no end at all"
    for completion in completions:
        assert len(completion.tokens) == len(completion.logprobs)
        if stop:
            assert tiny.EOS not in completion.tokens[:-1]
            assert (completion.stop_reason == "eos") == (completion.tokens[-1] == tiny.EOS)
        else:
            assert (len(completion.tokens), completion.stop_reason) == (6, "length")
