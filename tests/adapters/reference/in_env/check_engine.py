"""The embedded engine: what it samples, what it says of it, and that a change of weights reaches all of it."""

from dataclasses import replace

import pytest
import torch

from adapters.reference.engine_transformers import HOOKS, TransformersEngine
from harness.probe.hooks import verify_hooks
from tests.adapters.reference.in_env import laws, tiny

PROMPTS = [[3, 5, 7, 9, 11, 2, 4], [6, 8, 10, 4], [12, 5, 5], list(range(2, 22))]


def test_no_hook_has_drifted() -> None:
    assert verify_hooks(HOOKS) == []


@pytest.mark.parametrize("decoding", laws.DECODINGS, ids=str)
def test_it_samples_the_distribution_that_it_reports(decoding: dict[str, float]) -> None:
    module = tiny.model(laws.VOCAB)
    settings = replace(tiny.SETTINGS, prompts_per_batch=4, group_size=200, decoding=replace(tiny.DECODING, **decoding))
    engine = TransformersEngine(settings, module, 7, tiny.EOS, shared=True)
    torch.manual_seed(11)
    try:
        laws.check_sampling(engine, module, settings.decoding)
    finally:
        engine.close()


@pytest.mark.parametrize("tied", [False, True])
def test_its_log_probs_are_those_of_a_full_forward_pass_before_and_after_an_update(tied: bool) -> None:
    module = tiny.model(tied=tied)
    settings = replace(tiny.SETTINGS, decoding=replace(tiny.DECODING, temperature=0.7, max_tokens=20))
    engine = TransformersEngine(settings, module, 20, tiny.EOS, shared=True)
    try:
        for _ in range(3):
            laws.check_log_probs(engine.generate(PROMPTS, 4, 20), PROMPTS, module, 0.7)
            tiny.perturb(module)
    finally:
        engine.close()


def test_a_groups_prompt_is_prefilled_once() -> None:
    module = tiny.model()
    engine = TransformersEngine(tiny.SETTINGS, module, 20, tiny.EOS, shared=True)
    try:
        generation = engine.generate(PROMPTS, 4, 6)
    finally:
        engine.close()
    laws.check_phases(generation)
    prefilled = sum(phase.input_tokens for phase in generation.phases)
    # All of a prompt but its last token, which each copy computes to sample its own first token.
    assert prefilled == sum(len(prompt) - 1 for prompt in PROMPTS) + 4 * len(PROMPTS)


def test_equal_seeds_give_equal_completions() -> None:
    module = tiny.model()
    engine = TransformersEngine(tiny.SETTINGS, module, 20, tiny.EOS, shared=True)
    drawn = []
    try:
        for _ in range(5):
            torch.manual_seed(4)
            drawn.append([c.tokens for group in engine.generate(PROMPTS, 4, 6).groups for c in group])
    finally:
        engine.close()
    assert all(other == drawn[0] for other in drawn)


@pytest.mark.parametrize("stop", [True, False])
def test_completions_end_where_they_should(stop: bool) -> None:
    module = tiny.model(vocab=6)
    engine = TransformersEngine(
        replace(tiny.SETTINGS, decoding=replace(tiny.DECODING, stop_at_eos=stop)), module, 20, tiny.EOS, shared=True
    )
    try:
        laws.check_ends(engine.generate([[3, 2, 4]] * 4, 4, 6), stop)
    finally:
        engine.close()
