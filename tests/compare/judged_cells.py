"""Cells with made-up figures whose difference is known, to be judged."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from harness.compare.gates import PART, STEP
from harness.compare.results import CellResult
from harness.measure.values import Value

STEPS = 20
PARTS = {"rollout": 0.5, "train": 0.4, "sync": 0.06}
STAGES = {"prefill": 0.1, "decode": 0.4, "forward_backward": 0.4, "weight_sync": 0.06}
PART_OF = {"prefill": "rollout", "decode": "rollout", "forward_backward": "train", "weight_sync": "sync"}
MEMORY = "memory_peak_bytes"
QUIET = 0.01


def values(step: float, slower: Mapping[str, float] | None = None, memory: float = 1e9) -> list[Value]:
    """The figures of a run whose stages take their share of `step`, those of `slower` that many times longer."""
    stages = {stage: share * step * (slower or {}).get(stage, 1.0) for stage, share in STAGES.items()}
    whole = step + sum(stages.values()) - step * sum(STAGES.values())
    found = [Value(STEP, whole, "s", "e", STEPS, numerator=whole * STEPS, denominator=STEPS)]
    for part in PARTS:
        seconds = sum(stages[stage] for stage, of in PART_OF.items() if of == part)
        found.append(Value(PART, seconds, "s", "e", STEPS, variant=part))
    busy = sum(stages.values())
    for stage, seconds in stages.items():
        share = seconds / busy
        found.append(Value("stage_share", share, "share", "e", STEPS, variant=stage, numerator=seconds * STEPS))
    found.append(Value("unattributed_share", 0.04, "share", "e", 9, numerator=0.04 * step * STEPS))
    found.append(Value("completion_length", 10.0, "tokens", "e", 640))
    return [*found, Value(MEMORY, memory, "bytes", "e", 30)]


def cell(adapter: str, repeat: int, found: Sequence[Value] = (), **changes: Any) -> CellResult:
    """A cell that ended well, or as `changes` say."""
    fields: dict[str, Any] = {"layout": "colocated_sync", "track": "free", "status": "ok", "cause": None}
    fields |= {"reason": None, "foreign_cores": QUIET, "values": found or values(1.0)}
    if changes.get("status", "ok") != "ok":
        fields["values"] = ()
    return CellResult(adapter=adapter, repeat=repeat, **fields | changes)


def arm(
    adapter: str,
    seed: int,
    repeats: int = 5,
    noise: float = 0.004,
    slower: Mapping[str, float] | None = None,
    memory: float = 1e9,
    **changes: Any,
) -> list[CellResult]:
    """The repeats of one system; each of its stages varies by `noise` on its own, and so does its memory."""
    drawn = np.random.default_rng(seed).lognormal(0.0, noise, (repeats, len(STAGES) + 1)).tolist()
    cells = []
    for repeat, (size, *times) in enumerate(drawn):
        longer = {stage: (slower or {}).get(stage, 1.0) * time for stage, time in zip(STAGES, times, strict=True)}
        cells.append(cell(adapter, repeat, values(1.0, longer, memory * size), **changes))
    return cells


def busy(one: CellResult, generator: np.random.Generator, late: int) -> CellResult:
    """A cell beside which other processes ran in bursts, of which there are more the later it is: it took as much
    longer as the cores that they took."""
    bursts = generator.random() < 0.3 + 0.05 * late
    cores = generator.exponential(0.5) if bursts else 0.0
    slower = [
        replace(value, value=value.value * (1 + cores), numerator=value.numerator and value.numerator * (1 + cores))
        if value.unit == "s" and value.value is not None
        else value
        for value in one.values
    ]
    return replace(one, values=slower, foreign_cores=cores)
