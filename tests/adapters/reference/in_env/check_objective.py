"""Loss and gradient against an independent computation: float64, sample by sample, unpadded, from the definitions."""

import copy
import itertools
import math
import random
from dataclasses import replace
from typing import Any

import pytest
import torch

from adapters.reference.samples import Sample
from adapters.reference.settings import Settings
from tests.adapters.reference.in_env import tiny

VOCAB = 24


def _term(new: torch.Tensor, old: float, advantage: float, settings: Settings) -> torch.Tensor:
    """PPO's clipped term of one token, by cases."""
    objective = settings.objective
    ratio = (new - old).exp()
    low, high = 1.0 - objective.clip_low, 1.0 + objective.clip_high
    if advantage >= 0:
        return -advantage * (ratio if ratio.item() <= high else torch.tensor(high, dtype=torch.float64))
    return -advantage * (ratio if ratio.item() >= low else torch.tensor(low, dtype=torch.float64))


def _importance(policy: list[float], behavior: list[float], settings: Settings) -> list[float]:
    """What each token of one completion counts, by the correction's definition."""
    asked = settings.staleness
    ratios = [math.exp(ours - theirs) for ours, theirs in zip(policy, behavior, strict=True)]
    if asked.level == "sequence":
        ratios = [math.prod(ratios)] * len(ratios)
    if asked.correction == "none":
        return [1.0] * len(ratios)
    return [min(ratio, asked.cap) if asked.correction == "clip" else ratio * (ratio <= asked.cap) for ratio in ratios]


def expected_loss(policy: Any, reference: Any, samples: list[Sample], settings: Settings) -> torch.Tensor:
    per_sample = []
    for sample in samples:
        prompt, tokens = sample.prompt.token_ids, sample.completion.tokens
        ids = torch.tensor([prompt + tokens])
        places = [len(prompt) + place for place, sampled in enumerate(sample.completion.policy_mask) if sampled]
        scores = (policy(input_ids=ids).logits[0] / settings.decoding.temperature).log_softmax(-1)
        frozen = (reference(input_ids=ids).logits[0] / settings.decoding.temperature).log_softmax(-1).detach()
        new = [scores[place - 1, ids[0, place]] for place in places]
        kept = [frozen[place - 1, ids[0, place]] for place in places]
        now = [value.item() for value in new]
        behavior = [value for value in sample.completion.logprobs if value is not None]
        recomputed = now if sample.old is None else [value for value in sample.old if value is not None]
        old = recomputed if settings.logprobs == "recompute" else behavior
        first = recomputed if settings.logprobs == "recompute" else now
        terms = []
        for index, counts in enumerate(_importance(first, behavior, settings)):
            held = 1.0  # with the behaviour policy as the old one, the objective's ratio is part of the weight
            if settings.logprobs == "engine" and settings.staleness.correction != "none":
                held = math.exp(now[index] - behavior[index])
            term = _term(new[index], old[index], float(sample.advantage or 0.0), settings)
            gap = kept[index] - new[index]
            terms.append(term * counts / held + settings.objective.kl_beta * counts * (gap.exp() - gap - 1.0))
        per_sample.append(terms)
    if settings.objective.loss == "token_mean":
        every = [term for terms in per_sample for term in terms]
        return torch.stack(every).sum() / len(every)
    return torch.stack([torch.stack(terms).sum() / len(terms) for terms in per_sample]).mean()


def _near(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool((one - other).norm() <= 1e-5 * other.norm())


REGIMES = [
    ("recompute", "none", "token"),
    ("engine", "none", "token"),
    *itertools.product(("recompute", "engine"), ("clip", "mask"), ("token", "sequence")),
]


@pytest.mark.parametrize("regime", REGIMES, ids="-".join)
@pytest.mark.parametrize("kl_beta", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(6))
def test_loss_and_gradient(regime: tuple[str, str, str], kl_beta: float, seed: int) -> None:
    draw = random.Random(seed)
    loss = draw.choice(["token_mean", "sequence_mean"])
    settings = tiny.objective(loss=loss, kl_beta=kl_beta, clip_low=draw.choice([0.1, 0.2]), clip_high=0.28)
    settings = replace(
        settings,
        micro_batches=draw.randint(1, 3),
        minibatches=1 + seed % 2,
        decoding=replace(settings.decoding, temperature=draw.choice([0.7, 1.0, 1.3])),
        logprobs=regime[0],
        staleness=replace(settings.staleness, correction=regime[1], level=regime[2], cap=1.1),
    )
    module = tiny.model(VOCAB, seed, scale=0.08)
    trainer = tiny.trainer(module, settings)
    samples = [tiny.sample(number, VOCAB, draw, observed=0.3) for number in range(draw.randint(1, 9))]
    reference = copy.deepcopy(module)
    rows = tiny.logprobs(trainer, samples, settings.decoding.temperature)
    for sample, ours in zip(samples, rows, strict=True):  # ratios on both sides of the cap
        tiny.behave(sample, [value + draw.gauss(0.0, 0.2) for value in ours])
    tiny.score(trainer, samples)
    tiny.perturb(module, seed)
    for sample in samples:  # ratios on both sides of the clip range
        if sample.old is not None:
            sample.old = [None if value is None else value + draw.gauss(0.0, 0.3) for value in sample.old]
    double = copy.deepcopy(module).double()

    results = [trainer.accumulate(micro) for micro in trainer.assemble(samples)]
    expected = expected_loss(double, reference.double(), samples, settings)
    expected.backward()

    assert math.isclose(sum(loss for loss, _ in results), expected.item(), rel_tol=1e-4, abs_tol=1e-5)
    theirs = dict(double.named_parameters())
    norm = math.sqrt(sum(parameter.grad.pow(2).sum().item() for parameter in theirs.values()))
    for name, parameter in module.named_parameters():
        gap = (parameter.grad.double() - theirs[name].grad).norm().item()
        assert gap <= 1e-4 * norm + 1e-9, name


def test_the_log_probs_that_are_reported_are_the_policys() -> None:
    draw = random.Random(5)
    module = tiny.model(VOCAB)
    trainer = tiny.trainer(module, replace(tiny.SETTINGS, micro_batches=2))
    for micro in trainer.assemble([tiny.sample(number, VOCAB, draw) for number in range(5)]):
        _, rows = trainer.accumulate(micro)
        for sample, row in zip(micro.samples, rows, strict=True):
            expected = tiny.full_forward(module, sample.prompt.token_ids, sample.completion.tokens)
            assert torch.allclose(torch.tensor(row), expected, atol=1e-5)


def test_a_split_into_micro_batches_changes_nothing() -> None:
    samples = [tiny.sample(number, VOCAB, random.Random(9 + number)) for number in range(7)]
    gradients = []
    for parts in (1, 3, 7):
        module = tiny.model(VOCAB)
        trainer = tiny.trainer(module, replace(tiny.SETTINGS, micro_batches=parts))
        for micro in trainer.assemble(samples):
            trainer.accumulate(micro)
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in module.parameters()]))
    assert _near(gradients[0], gradients[1])
    assert _near(gradients[0], gradients[2])


def test_checkpointing_changes_nothing() -> None:
    samples = [tiny.sample(number, VOCAB, random.Random(number)) for number in range(4)]
    gradients = []
    for on in (False, True):
        module = tiny.model(VOCAB)
        settings = replace(tiny.SETTINGS, optimizer=replace(tiny.OPTIMIZER, gradient_checkpointing=on))
        trainer = tiny.trainer(module, settings)
        for micro in trainer.assemble(samples):
            trainer.accumulate(micro)
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in module.parameters()]))
    assert _near(gradients[0], gradients[1])


def test_a_step_is_adamw_after_clipping() -> None:
    draw = random.Random(2)
    module = tiny.model(VOCAB)
    settings = replace(tiny.SETTINGS, optimizer=replace(tiny.OPTIMIZER, weight_decay=0.1, max_grad_norm=0.01))
    trainer, before = tiny.trainer(module, settings), copy.deepcopy(module)
    for micro in trainer.assemble([tiny.sample(number, VOCAB, draw) for number in range(4)]):
        trainer.accumulate(micro)
    gradients = {name: parameter.grad.double() for name, parameter in module.named_parameters()}
    norm, applied = trainer.apply()
    assert applied
    assert trainer.version == 1
    assert math.isclose(norm, math.sqrt(sum(g.pow(2).sum().item() for g in gradients.values())), rel_tol=1e-5)
    after = dict(module.named_parameters())
    for name, parameter in before.named_parameters():
        clipped = gradients[name] * min(1.0, 0.01 / norm)
        # Adam's first step: both moments, corrected for their bias, are the gradient and its square.
        step = clipped / (clipped.abs() + 1e-8)
        expected = parameter.double() * (1 - 1e-3 * 0.1) - 1e-3 * step
        sure = clipped.abs() > 1e-7
        assert torch.allclose(after[name].double()[sure], expected[sure], atol=2e-5), name


def test_a_smaller_rate_is_for_one_step_only() -> None:
    steps = []
    for scale in (1.0, 0.25):
        module = tiny.model(VOCAB)
        trainer, before = tiny.trainer(module), copy.deepcopy(module.state_dict())
        update = trainer.update([tiny.sample(0, VOCAB, random.Random(3))], "gen-0", 0, lr_scale=scale)
        assert update.learning_rate == pytest.approx(scale * tiny.OPTIMIZER.learning_rate)
        assert trainer.optimizer.param_groups[0]["lr"] == tiny.OPTIMIZER.learning_rate
        steps.append(torch.cat([(module.state_dict()[name] - value).flatten() for name, value in before.items()]))
    assert torch.allclose(steps[0] * 0.25, steps[1], atol=1e-7)


def test_an_observation_is_read_and_never_trained_on() -> None:
    """A token that the policy did not sample: what follows depends on it, and it has no log-prob, weight or target."""
    draw = random.Random(4)
    made = tiny.sample(0, VOCAB, draw)
    made.prompt.token_ids[:] = [3, 4]
    completion = replace(made.completion, tokens=[5, 6, 7, 8], mask=[1, 0, 0, 1], logprobs=[-1.0, None, None, -1.0])
    made.completion = completion
    module = tiny.model(VOCAB)
    trainer = tiny.trainer(module, replace(tiny.SETTINGS, minibatches=2))
    (old,) = trainer.score([made], "gen-0", 0).old or [[]]
    (micro,) = trainer.assemble([made])
    assert micro.packed.policy_tokens == 2
    assert micro.packed.targets.tolist() == [5, 8]
    assert micro.weights.tolist() == [0.5, 0.5]
    update = trainer.update([made], "gen-0", 0)
    expected = tiny.full_forward(tiny.model(VOCAB), [3, 4], [5, 6, 7, 8])
    for row in (old, update.logprobs[0]):
        assert [value is None for value in row] == [False, True, True, False]
        assert row[0] == pytest.approx(expected[0].item(), abs=1e-5)
        assert row[3] == pytest.approx(expected[3].item(), abs=1e-5)


def test_a_gradient_that_is_not_finite_is_not_applied() -> None:
    module = tiny.model(VOCAB)
    trainer = tiny.trainer(module, tiny.SETTINGS)
    made = tiny.sample(0, VOCAB, random.Random(1))
    made.advantage = math.inf
    before = copy.deepcopy(module.state_dict())
    for micro in trainer.assemble([made]):
        trainer.accumulate(micro)
    _, applied = trainer.apply()
    assert not applied
    assert trainer.version == 0
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
