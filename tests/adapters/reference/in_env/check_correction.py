"""Importance correction against numbers worked out by hand, and its bias by enumeration."""

import itertools
import math
import random
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from adapters.reference.correction import Correction, log_importance
from adapters.reference.engine import Completion
from adapters.reference.objective import kl_terms, policy_terms
from adapters.reference.samples import Sample
from adapters.reference.settings import Settings
from harness.errors import SystemFailure, UserError
from harness.task.bundle import Prompt
from tests.adapters.reference.in_env import tiny

LENGTHS = torch.tensor([2, 1])
POLICY = torch.tensor([-1.0, -2.0, -0.5])
BEHAVIOR = torch.tensor([-2.0, -1.5, -0.5])
# By hand: log w of the tokens is 1, -0.5, 0; of the sequences 0.5, 0.


def _weights(kind: str, level: str, cap: float) -> list[float]:
    found: list[float] = Correction(kind, level, cap).log_weights(POLICY, BEHAVIOR, LENGTHS).exp().tolist()
    return found


def test_weights_by_hand() -> None:
    e = math.e
    assert _weights("clip", "token", math.inf) == pytest.approx([e, e**-0.5, 1.0])
    assert _weights("clip", "token", 2.0) == pytest.approx([2.0, e**-0.5, 1.0])
    assert _weights("mask", "token", 2.0) == pytest.approx([0.0, e**-0.5, 1.0])
    assert _weights("clip", "sequence", 1.5) == pytest.approx([1.5, 1.5, 1.0])
    assert _weights("mask", "sequence", 1.5) == pytest.approx([0.0, 0.0, 1.0])
    assert _weights("mask", "sequence", 1.7) == pytest.approx([e**0.5, e**0.5, 1.0])


def test_log_w_in_the_thousands_neither_overflows_nor_vanishes() -> None:
    far = torch.tensor([-1.0, -1001.0])
    near = torch.tensor([-1001.0, -1.0])
    lengths = torch.tensor([1, 1])
    assert log_importance(far, near, lengths, "token").tolist() == [1000.0, -1000.0]
    assert Correction("clip", "token", 2.0).log_weights(far, near, lengths).tolist() == [math.log(2.0), -1000.0]
    assert Correction("mask", "token", 2.0).log_weights(far, near, lengths).tolist() == [-math.inf, -1000.0]
    both = torch.tensor([2])  # 1000 - 1000: the sequence is as likely under either
    assert log_importance(far, near, both, "sequence").tolist() == [0.0, 0.0]


@pytest.mark.parametrize("advantage", [1.0, -1.0])
@pytest.mark.parametrize("kind", ["clip", "mask"])
def test_a_term_that_is_far_off_leaves_a_gradient_that_is_a_number(advantage: float, kind: str) -> None:
    """Where the objective's ratio is the importance ratio: exp(1000) is no float."""
    logp = torch.tensor([-1.0], requires_grad=True)
    behavior = torch.tensor([-1001.0])
    log_c = Correction(kind, "token", 2.0).log_weights(logp, behavior, torch.tensor([1]))
    scale = log_c - (logp.detach() - behavior)
    policy_terms(logp, behavior, torch.tensor([advantage]), 0.2, 0.2, scale).sum().backward()
    assert logp.grad is not None
    # Above its clip a good token has no gradient; a bad one counts the cap, or is masked.
    assert logp.grad.item() == pytest.approx(2.0 if advantage < 0 and kind == "clip" else 0.0)
    logp.grad = None
    kl_terms(logp, torch.tensor([-1.5]), log_c).sum().backward()
    assert math.isfinite(logp.grad.item() if logp.grad is not None else math.nan)


def test_a_ratio_that_overflows_is_still_clipped() -> None:
    logp = torch.tensor([-1.0], requires_grad=True)
    term = policy_terms(logp, torch.tensor([-1001.0]), torch.tensor([1.0]), 0.2, 0.3)
    term.sum().backward()
    assert term.item() == pytest.approx(-1.3)
    assert logp.grad is not None
    assert logp.grad.item() == 0.0


VOCAB, LENGTH, PROMPT = 3, 2, [1, 2]
EVERY = [list(tokens) for tokens in itertools.product(range(VOCAB), repeat=LENGTH)]


def _expected_gradient(settings: Settings, corrected: bool) -> Tensor:
    """The gradient of the objective over every completion there is, each as often as its sampler draws it: the
    behaviour policy where the trainer's loss is `corrected`, else the trainer's policy itself."""
    behavior, policy = tiny.model(VOCAB, scale=0.08), tiny.model(VOCAB, scale=0.08)
    tiny.perturb(behavior, by=0.6)
    draw = random.Random(0)
    trainer = tiny.trainer(policy, settings)
    for tokens in EVERY:
        reward = draw.gauss(0.0, 1.0)
        mu, pi = (tiny.full_forward(module, PROMPT, tokens) for module in (behavior, policy))
        sampler = mu if corrected else pi
        made = _sample(tokens, sampler.tolist())
        made.advantage = reward * sampler.double().sum().exp().item()
        for micro in trainer.assemble([made]):
            trainer.accumulate(micro)
    return torch.cat([parameter.grad.double().flatten() for parameter in policy.parameters()])


def _sample(tokens: list[int], logprobs: list[float]) -> Sample:
    completion = Completion(tokens, list(logprobs), "length", "derived", 0, 0, 0, 0)
    asked = Prompt(prompt_id="p", messages=[], answer="", meta={}, text="", token_ids=PROMPT)
    return Sample("s", "g", "gen-0", asked, completion, 0, 0, truncated=False)


def _with(level: str, cap: float, regime: str, kind: str = "clip") -> Settings:
    # Ratios are held by the correction alone: the objective's own clip lets all of them through.
    objective = replace(tiny.OBJECTIVE, clip_low=1.0, clip_high=1e6)
    stale = replace(tiny.SETTINGS.staleness, correction=kind, level=level, cap=cap)
    return replace(tiny.SETTINGS, objective=objective, staleness=stale, logprobs=regime)


@pytest.mark.parametrize("regime", ["recompute", "engine"])
def test_sequence_correction_without_a_cap_is_unbiased_and_no_other_is(regime: str) -> None:
    exact = _expected_gradient(tiny.SETTINGS, corrected=False)

    def bias(settings: Settings) -> float:
        return float((_expected_gradient(settings, corrected=True) - exact).norm() / exact.norm())

    assert bias(_with("sequence", math.inf, regime)) < 1e-5
    assert bias(_with("token", math.inf, regime)) > 0.02
    assert bias(_with("sequence", 1.05, regime)) > 0.02
    assert bias(_with("sequence", 1.05, regime, "mask")) > 0.02
    assert bias(tiny.SETTINGS) > 0.02


def test_one_stack_is_held_to_it_at_lag_0() -> None:
    settings = replace(tiny.SETTINGS, logprobs="unified")
    trainer = tiny.trainer(tiny.model(VOCAB), settings)
    made = tiny.sample(0, VOCAB, random.Random(0))
    (ours,) = tiny.logprobs(trainer, [made], 1.0)
    tiny.behave(made, ours)
    assert trainer.update([made], "gen-0", 0).applied
    trainer.version = 0
    tiny.behave(made, [value - 2e-4 for value in tiny.logprobs(trainer, [made], 1.0)[0]])
    with pytest.raises(SystemFailure, match="one stack"):
        trainer.update([made], "gen-0", 0)
    trainer.version = 1  # stale: a difference proves nothing
    assert trainer.update([made], "gen-0", 1).applied


def test_settings_that_do_not_go_together_make_no_trainer() -> None:
    with pytest.raises(UserError, match="top_p"):
        tiny.trainer(
            tiny.model(VOCAB), replace(tiny.SETTINGS, logprobs="engine", decoding=replace(tiny.DECODING, top_p=0.9))
        )
