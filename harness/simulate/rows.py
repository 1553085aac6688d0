"""The rows that a simulated cell writes; times in nanoseconds of the simulated clock, which begins at 0."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.contract.writer import Row
from harness.simulate.draws import Distribution
from harness.simulate.recorder import Step
from harness.simulate.records import Request, Sample
from harness.simulate.settings import Settings

BEHAVIOR = -4.0
"""What the made-up engine reports for every token: low enough that a ratio above 1 is still a probability."""
CLIP = 0.2
UNLIMITED = 2**31 - 1


def ns(seconds: float) -> int:
    """On the ledger's clock."""
    return round(seconds * 1e9)


def span(stage: str, trace: str, start: float, end: float, **fields: Any) -> dict[str, Any]:
    """A span without its device."""
    zero = {"records": 0, "input_tokens": 0, "output_tokens": 0, "policy_tokens": 0, "padded_tokens": 0}
    return zero | {"stage": stage, "trace_id": trace, "t_start": ns(start), "t_end": ns(end)} | fields


def counts(samples: Sequence[Sample]) -> dict[str, Any]:
    """Records, policy tokens, and the prompts' tokens that are read with them."""
    policy = sum(sample.length for sample in samples)
    return {
        "records": len(samples),
        "policy_tokens": policy,
        "input_tokens": sum(sample.group.prompt_tokens for sample in samples),
    }


def devices(settings: Settings) -> dict[str, str]:
    """By process the device that it computes on: a replica each and the trainer's, or one pool for all."""
    names = [f"rollout-{number}" for number in range(settings.rollout.replicas)]
    if settings.placement == "colocated":
        return dict.fromkeys([*names, "trainer"], "pool")
    return {name: name for name in [*names, "trainer"]}


def lane(request: Request) -> str:
    """The process that worked on a request: one of those that a replica does side by side."""
    return f"{request.worker}.{request.lane}"


def request_of(sample: Sample) -> Request:
    """The request that asked for a completion."""
    requests = sample.group.requests
    return requests[sample.number] if len(requests) > 1 else requests[0]


def sample_id(sample: Sample) -> str:
    """The completion in its group."""
    return f"p{sample.group.number}.g{sample.number}"


def engine_spans(request: Request, trace: str, died: float | None) -> Iterator[Row]:
    """The prefill of those that began at once, and the decoding of a request, split where a version changed. Of one
    that died, what its replica had made until then."""
    begun = [sample for sample in request.samples if sample.t_end > sample.t_start or sample.t_end == died]
    if not begun:
        return
    start = min(sample.t_start for sample in begun)
    first = [sample for sample in begun if sample.t_start == start]
    ready = max(sample.t_first for sample in first)
    if died is not None and ready > died:
        return
    prompts = sum({sample.group: sample.group.prompt_tokens for sample in begun}.values())
    version = first[0].version
    at: dict[str, Any] = {"policy_version": version, "records": len(request.samples)}
    yield span("prefill", trace, start, ready, input_tokens=prompts, output_tokens=len(first), **at)
    parts: dict[int, tuple[int, float, float]] = {version: (-len(first), ready, ready)}
    for sample in begun:
        whole = [(sample.version, _made(sample, died), sample.t_first, sample.t_end)]
        for own, tokens, begin, end in sample.segments or whole:
            seen = parts.get(own, (0, begin, end))
            parts[own] = seen[0] + tokens, min(seen[1], begin), max(seen[2], end)
    reached = ready
    for own, (tokens, begin, end) in sorted(parts.items()):
        begin = max(begin, reached)
        if tokens or end > begin:
            reached = max(begin, end)
            yield span("decode", trace, begin, reached, **at | {"policy_version": own, "output_tokens": tokens})


def _made(sample: Sample, died: float | None) -> int:
    return sample.length if died is None else sample.made


def rollout(sample: Sample, settings: Settings, run_id: str, trace: str, published: int) -> Row:
    """A row of `rollouts`."""
    group, length, prompt = sample.group, sample.length, sample.group.prompt_tokens
    most = settings.response_tokens.at_most
    decoding = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "stop": [], "seed": settings.seed}
    reward = None if sample.failed else float(sample.right)
    several = sample.segments is not None
    return {
        "run_id": run_id,
        "prompt_id": f"p{group.number}",
        "group_id": f"p{group.number}",
        "sample_id": sample_id(sample),
        "trace_id": trace,
        "policy_version": None if several else sample.version,
        "token_policy_versions": [own for own, n, _, _ in sample.segments or () for _ in range(n)] if several else None,
        "published_version": published,
        "prompt_tokens": [1] * prompt,
        "response_tokens": [2] * length,
        "policy_mask": [0] * prompt + [1] * length,
        "behavior_logprobs": [BEHAVIOR] * length,
        "behavior_logprob_kind": "sampled_distribution",
        "decoding": decoding | {"max_tokens": int(most) if most else UNLIMITED},
        "reward": {} if reward is None else {"simulated": reward},
        "reward_total": reward,
        "advantage": None if reward is None else _advantage(sample),
        "stop_reason": "length" if most and length >= most else "eos",
        "stop_reason_source": "derived",
        "verifier_version": "simulated",
        "tokenizer_hash": "simulated",
        "template_hash": "simulated",
        "status": "infrastructure_error" if sample.failed else "ok",
        "group_complete": group.judged == group.size,
        "text": None,
        "t_queued": ns(sample.t_start),
        "t_generate_start": ns(sample.t_start),
        "t_first_token": ns(sample.t_first),
        "t_generate_end": ns(sample.t_end),
        "t_verify_start": ns(sample.t_verify),
        "t_verify_end": ns(sample.t_verified),
    }


def _advantage(sample: Sample) -> float:
    """The reward less the mean of its group's, over their standard deviation where there is one [GRPO]."""
    group = sample.group
    mean = group.right / group.judged
    deviation = float(np.sqrt(mean * (1 - mean)))
    return (float(sample.right) - mean) / deviation if deviation else 0.0


def trained(step: Step, sample: Sample, scored: npt.NDArray[Any], old: npt.NDArray[Any] | None) -> Row:
    """A row of `trained`."""
    return {
        "sample_id": sample_id(sample),
        "batch_id": batch_id(step),
        "step": step.number,
        "epoch": step.epoch,
        "policy_version": step.version,
        "published_version": step.published,
        "trainer_logprobs": scored.tolist(),
        "old_logprobs": None if old is None else old.tolist(),
        "advantage": _advantage(sample),
        "policy_tokens": sample.length,
        "t_step_start": ns(step.start),
    }


def batch_id(step: Step) -> str:
    """Of the batch that a step consumed."""
    return f"batch-{step.batch}-mb-{step.minibatch}" + (f"-e{step.epoch}" if step.epoch else "")


def update(step: Step) -> Row:
    """A row of `updates`; there is no loss and no gradient."""
    return {
        "step": step.number,
        "batch_id": batch_id(step),
        "policy_version_before": step.version,
        "policy_version_after": step.version + 1,
        "t_start": ns(step.start),
        "t_end": ns(step.end),
        "applied": True,
        "loss": None,
        "grad_norm": None,
        "learning_rate": step.lr_scale,
        "records": len(step.samples),
        "groups": len({sample.group for sample in step.samples}),
        "policy_tokens": sum(sample.length for sample in step.samples),
        "padded_tokens": 0,
        "clip_low": CLIP,
        "clip_high": CLIP,
    }


def fate(sample: Sample, name: str, reason: str | None, t: float) -> Row:
    """A row of `fates`."""
    return {"sample_id": sample_id(sample), "fate": name, "reason": reason, "policy_tokens": sample.length, "t": ns(t)}


def verifier_error(sample: Sample) -> Row:
    """A row of `faults`: no verdict came in time."""
    row = {"t": ns(sample.t_verified), "kind": "verifier_error", "cause": "infrastructure", "where": "verifier"}
    return row | {"detail": "it took longer than verifier.timeout_s", "sample_id": sample_id(sample)}


def plain(settings: Any) -> Any:
    """Settings as JSON-able data; a distribution in words."""
    if isinstance(settings, Distribution):
        return str(settings)
    if is_dataclass(settings) and not isinstance(settings, type):
        return {name: plain(getattr(settings, name)) for name in asdict(settings)}
    return json.loads(json.dumps(settings))
