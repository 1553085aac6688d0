"""A random Qwen2 of two layers, samples for it, and settings: what the checks run on."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from adapters.reference.batches import spread
from adapters.reference.engine import Completion
from adapters.reference.microbatches import packed_of
from adapters.reference.policy import policy_logprobs
from adapters.reference.samples import Sample
from adapters.reference.settings import (
    Checkpointing,
    Decoding,
    Lora,
    Objective,
    Optimizer,
    Pools,
    QueueLimits,
    Settings,
    Staleness,
)
from adapters.reference.trainer import Trainer
from harness.probe import Probe
from harness.task.bundle import Prompt

EOS = 1
DECODING = Decoding(temperature=1.0, top_p=1.0, top_k=0, min_p=0.0, max_tokens=6, stop_at_eos=True)
OBJECTIVE = Objective(0.2, 0.2, "token_mean", 0.0, "group", 1, 1e-4, False)
OPTIMIZER = Optimizer(1e-3, 0.9, 0.999, 1e-8, 0.0, 1.0, False)
SETTINGS = Settings(
    run_id="check",
    directory=Path(),
    bundle=Path(),
    device="cpu",
    threads=2,
    seed=3,
    attempt=0,
    fault={"name": "none"},
    layout="colocated_sync",
    lag_bound=0,
    engine="transformers",
    verify_every=1,
    publication="full",
    versions="one",
    logprobs="recompute",
    pools=Pools(replicas=1, verifiers=1, trainer_ranks=1, rollout_threads=1, trainer_threads=1, ray_address=None),
    queue=QueueLimits(records=None, tokens=None, bytes=None, age_s=None, lag=None),
    staleness=Staleness(
        max_lag=None,
        max_age_s=None,
        correction="none",
        level="token",
        cap=2.0,
        ess_floor=None,
        stale_epochs=None,
        rebalance=False,
        sync_every=None,
    ),
    checkpoint=Checkpointing(every=0, mtbf_s=None, background=False, keep=2, queue="keep", restore="full"),
    lora=Lora(0, 16.0),
    steps=1,
    prompts_per_batch=4,
    group_size=4,
    minibatches=1,
    micro_batches=1,
    inner_epochs=1,
    verifier_timeout_s=5.0,
    decoding=DECODING,
    objective=OBJECTIVE,
    optimizer=OPTIMIZER,
)

UNSEEN = Probe({"run_id": "check", "directory": "", "attempt": 0}, enabled=False)


def model(vocab: int = 24, seed: int = 0, tied: bool = False, scale: float = 0.3) -> Any:
    """Large initial weights, so that the distributions are far from flat."""
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=vocab,
        hidden_size=128,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=512,
        initializer_range=scale,
        tie_word_embeddings=tied,
        bos_token_id=0,
        eos_token_id=EOS,
        pad_token_id=0,
        dtype="float32",
    )
    return Qwen2ForCausalLM(config).eval()


def objective(**changes: Any) -> Settings:
    """The settings with another objective."""
    return replace(SETTINGS, objective=replace(OBJECTIVE, **changes))


def trainer(module: Any, settings: Settings = SETTINGS) -> Trainer:
    """A trainer of one rank that writes no ledger."""
    return Trainer(module, settings, pad=0, probe=UNSEEN)


def sample(number: int, vocab: int, draw: random.Random, longest: int = 7, observed: float = 0.0) -> Sample:
    """A made-up sample with an advantage and no verdict; a share `observed` of its tokens but the first is no policy
    token."""
    prompt = [draw.randrange(vocab) for _ in range(draw.randint(1, 5))]
    tokens = [draw.randrange(vocab) for _ in range(draw.randint(1, longest))]
    mask = [1] + [int(draw.random() >= observed) for _ in tokens[1:]] if observed else None
    logprobs = [-1.0 if sampled else None for sampled in mask or [1] * len(tokens)]
    completion = Completion(tokens, logprobs, "length", "derived", 0, 0, 0, 0, mask)
    asked = Prompt(prompt_id=f"p{number}", messages=[], answer="", meta={}, text="", token_ids=prompt)
    made = Sample(f"s{number}", f"g{number // 4}", "gen-0", asked, completion, 0, 0, truncated=False)
    made.advantage = draw.gauss(0.0, 1.0)
    return made


def perturb(module: Any, seed: int = 1, by: float = 0.05) -> None:
    """Change every weight, as a training step does."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += by * parameter.abs().mean() * torch.randn(parameter.shape, generator=generator)


def full_forward(module: Any, prompt: list[int], tokens: list[int], temperature: float = 1.0) -> torch.Tensor:
    """Log-probs of the tokens by one plain forward pass over the whole sequence, in the module's precision."""
    with torch.no_grad():
        logits = module(input_ids=torch.tensor([prompt + tokens]), use_cache=False).logits[0]
    scores = (logits / temperature).log_softmax(-1)
    return torch.stack([scores[len(prompt) - 1 + place, token] for place, token in enumerate(tokens)])


def logprobs(trainer: Trainer, samples: list[Sample], temperature: float) -> list[list[float]]:
    """[S][policy tokens] under the trainer's policy."""
    packed = packed_of(samples, 0, "cpu")
    with torch.no_grad():
        values = policy_logprobs(trainer.model, packed, temperature)
    return [row.tolist() for row in values.split(packed.lengths.tolist())]


def behave(made: Sample, values: list[float]) -> None:
    """Say that the sample's policy tokens were drawn with these log-probs."""
    made.completion = replace(made.completion, logprobs=spread(values, made.completion.policy_mask))


def score(trainer: Trainer, samples: list[Sample]) -> None:
    """Fill in old and reference log-probs as the loop does."""
    scores = trainer.score(samples, "gen-0", 0)
    for index, made in enumerate(samples):
        made.old = scores.old[index] if scores.old else None
        made.reference = scores.reference[index] if scores.reference else None
