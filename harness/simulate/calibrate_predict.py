"""What each placement, synchrony and split would do, simulated from a calibration, with intervals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harness.simulate.calibrate import Calibration, Decoding, decoding_law
from harness.simulate.calibrate_cores import Role, stretched
from harness.simulate.calibrate_spans import COLLECT, SIDES, Batches, Floats
from harness.simulate.reading import build
from harness.simulate.records import Sample
from harness.simulate.settings import Settings
from harness.simulate.world import World

INTERVAL = (2.5, 97.5)
NO_TRANSFER = "calls and transfers between processes were not measured: calibrate on a cell of disaggregated_sync"
CENTRE = 5
"""How many times as long what stands in the middle is simulated, so that its own draws add little."""
TRAINING = ("passes", "update", "logp", "publish")
NO_TIMEOUT = 1e9
"""A verdict's seconds hold what waiting for slow ones took."""
NO_TIME = 1e-9
"""Seconds that stand for none where the simulator needs some."""


@dataclass(frozen=True)
class Variant:
    """A layout of the reference loop, the updates that a batch may be behind, and the processes of each side."""

    layout: str
    lag_bound: int
    replicas: int
    ranks: int

    @property
    def placement(self) -> str:
        """Of the layout."""
        return self.layout.split("_")[0]

    @property
    def synchrony(self) -> str:
        """Of the layout."""
        return "asynchronous" if self.layout.endswith("_async") else "synchronous"


@dataclass(frozen=True)
class Prediction:
    """By name (`period_s`, `tokens_per_s` where tokens are known, `trainer_idle`, `lag_mean`, `lag_max`) a value and
    the ends of its interval; or why there is none."""

    variant: Variant
    figures: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    refused: str | None = None


def predict(found: Calibration, variant: Variant, *, batches: int, resamples: int, seed: int) -> Prediction:
    """Simulate a typical measured batch; and for the interval `resamples` times `batches` batches, those measured drawn
    anew each time, each with a seed of its own."""
    if variant.placement == "disaggregated" and found.placement == "colocated":
        return Prediction(variant, {}, {}, NO_TRANSFER)
    centre = _simulated(found, found.batches, variant, CENTRE * batches, seed)
    rng = np.random.default_rng([seed, 3])
    drawn = [
        _simulated(found, found.batches.drawn(rng), variant, batches, seed + number)
        for number in range(1, resamples + 1)
    ]
    intervals = {}
    for name in centre if drawn else ():
        ends: Floats = np.percentile([each[name] for each in drawn], INTERVAL)
        intervals[name] = float(ends[0]), float(ends[1])
    return Prediction(variant, centre, intervals)


def settings_of_variant(found: Calibration, measured: Batches, variant: Variant, batches: int, seed: int) -> Settings:
    """The simulation of a variant from the typical seconds of the measured batches' parts.

    Where colocated, the gaps between processes fall away. What is computed before decoding and the passes of the
    trainer are taken to scale with replicas and ranks; a decoding step of sequences costs the same in each replica.
    """
    part, law = _on_cores(found, variant, _parts(found, measured, variant), decoding_law(measured, found.samples))
    overlap = variant.layout == "colocated_overlap"
    prompt = int(np.ceil(found.prompt_tokens))
    lengths = np.concatenate(measured.lengths)
    passes = measured.stages["forward_backward"]
    before = part["before"] - (part["prompt_prep"] if overlap else 0.0)
    given = {
        "name": variant.layout,
        "seed": seed,
        "seconds": None,
        "steps": batches * found.updates,
        "warmup_steps": 0,
        "synchrony": variant.synchrony,
        "placement": variant.placement,
        "lag_bound": variant.lag_bound,
        "order": "asked",
        "group_size": found.group_size,
        "prompt_tokens": prompt,
        "response_tokens": {"name": "measured", "values": lengths.tolist()},
        "batch": {"groups": found.groups, "tokens": None, "minibatches": found.updates, "inner_epochs": 1},
        "rollout": {
            "replicas": variant.replicas,
            "slots": found.samples,
            "kv_tokens": None,
            "request": "group" if overlap else "part",
            "step_s": max(law.step_s, NO_TIME),
            "step_s_per_sequence": law.sequence_s,
            "prefill_s_per_token": before * found.replicas / (found.groups * prompt),
            "mtbf_s": None,
            "repair_s": 0,
        },
        "verifier": {"workers": 1, "seconds": part["verdict"] / found.samples, "timeout_s": NO_TIMEOUT},
        "trainer": {
            "fixed_s": part["passes"] / found.updates,
            "s_per_token": 0,
            "optimizer_s": part["update"] / found.updates,
            "logprob_s_per_token": part["logp"] / float(measured.tokens.mean()),
            "jitter": {"name": "measured", "values": (passes / passes.mean()).tolist()},
            "mtbf_s": None,
            "restart_s": 0,
        },
        "publication": {"prepare_s": part["publish"], "activate_s": 0, "bytes": 0, "in_flight": "wait"},
        "queue": {name: found.limits.get(name) for name in ("records", "tokens", "bytes", "age_s", "lag")},
        "staleness": _ALL_KEPT,
        "checkpoint": {"every": int(part["keep"] > 0), "seconds": part["keep"], "background": False, "queue": "keep"},
        "synthetic": {"right": 0.5, "ratio_sd": 0, "ratio_sd_per_lag": 0},
    }
    return build(Settings, given)


_ALL_KEPT = dict.fromkeys(("max_lag", "max_age_s", "ess_floor", "stale_epochs", "sync_every")) | {
    "correction": "none",
    "level": "token",
    "cap": 1.0,
    "rebalance": False,
}


def _parts(found: Calibration, measured: Batches, variant: Variant) -> dict[str, float]:
    """Typical seconds of a batch by what the simulator calls them."""
    apart = found.placement == variant.placement
    stage = {name: measured.part(values) for name, values in measured.stages.items()}
    gap = {side: measured.part(measured.within[side], *([measured.between[side]] if apart else [])) for side in SIDES}
    decode = stage["decode"] + stage["generate"]
    before = stage["prompt_prep"] + stage["prefill"] + gap["rollout"]
    return {
        "prompt_prep": stage["prompt_prep"],
        "before": before if measured.steps.any() else before + decode,
        "verdict": stage["verifier"] + stage[COLLECT] + gap["verdict"],
        "decode": decode if measured.steps.any() else 0.0,
        "passes": stage["forward_backward"] * found.ranks / variant.ranks,
        "update": stage["batch_assembly"] + stage["optimizer_step"] + gap["train"],
        "logp": stage["logprob_recompute"] * found.ranks / variant.ranks,
        "publish": stage["weight_sync"] + gap["publish"],
        "keep": stage["checkpoint"] + gap["keep"],
    }


def _on_cores(
    found: Calibration, variant: Variant, part: dict[str, float], law: Decoding
) -> tuple[dict[str, float], Decoding]:
    """The same where processes share a machine's cores; see `harness.simulate.calibrate_cores`."""
    if found.device != "cpu" or not found.cores or variant.placement == "colocated":
        return part, law
    rollout_s = part["before"] * found.replicas / variant.replicas + part["decode"]
    train_s = sum(part[name] for name in TRAINING)
    measured, asked = (
        [
            Role(rollout_s, each.replicas * found.rollout_threads),
            Role(part["verdict"], 1.0),
            Role(train_s, each.ranks * found.trainer_threads),
        ]
        for each in (found, variant)
    )
    overlap = variant.synchrony == "asynchronous" and variant.lag_bound > 0
    before = stretched(measured, found.cores, overlap=False)
    after = stretched(asked, found.cores, overlap=overlap)
    rollout, verdict, train = (now / then for now, then in zip(after, before, strict=True))
    factor = dict.fromkeys(TRAINING, train) | {"before": rollout, "prompt_prep": rollout, "verdict": verdict}
    stretched_law = replace(law, step_s=law.step_s * rollout, sequence_s=law.sequence_s * rollout)
    return {name: value * factor.get(name, 1.0) for name, value in part.items()}, stretched_law


def _simulated(found: Calibration, measured: Batches, variant: Variant, batches: int, seed: int) -> dict[str, float]:
    settings = settings_of_variant(found, measured, variant, batches, seed)
    heard = _Heard()
    World(settings, heard).run()
    filled = min(variant.lag_bound // found.updates + 2, batches // 2)
    seconds = heard.ends[-1] - heard.ends[filled]
    period = seconds / (len(heard.ends) - 1 - filled)
    lags = heard.lags[filled + 1 :]
    told = {
        "period_s": period,
        "tokens_per_s": float(measured.counted.mean()) / period,
        "trainer_idle": sum(heard.waits[filled + 1 :]) / seconds,
        "lag_mean": float(np.mean(lags)),
        "lag_max": float(max(lags)),
    }
    return {name: value for name, value in told.items() if np.isfinite(value)}


class _Heard:
    """Of each batch the end of its last update, how long the trainer waited for it, and its lag; a `Recorder` that
    hears nothing else."""

    def __init__(self) -> None:
        self.ends: list[float] = []
        self.waits: list[float] = []
        self.lags: list[float] = []

    def waited(self, start: float, end: float, records: int) -> None:
        """See `Recorder`."""
        self.waits.append(end - start)

    def batch_done(self, batch: int, version: int, samples: Sequence[Sample], t: float) -> None:
        """See `Recorder`."""
        self.ends.append(t)
        self.lags.append(version - min(sample.version for sample in samples))

    def __getattr__(self, name: str) -> Callable[..., None]:
        return _nothing


def _nothing(*_: Any) -> None:
    return None
