"""How lag, idle GPUs and lost work grow from 8 to 10,000 GPUs: a simulated day at the published rate of failures.

Half of the GPUs roll out, four to a replica; half train. A failure of a trainer's GPU ends the job, one of a replica's
ends that replica. The rates are chosen so that both halves could be busy; no machine and no framework is meant.
"""

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.cluster.job import Job
from harness.cluster.launchers import launch
from harness.execute.compose import compose_choices
from harness.execute.machine import usable_cores
from harness.simulate.profiles import settings_of
from harness.simulate.settings import Settings
from harness.simulate.simulate import simulate
from harness.theory.checkpoint import best_interval, job_between_failures

DEVICE_HOURS = 54 * 24 * 16_384 / 419
"""Between interruptions of one GPU: 419 unexpected ones in 54 days on 16,384 GPUs (Llama 3, arXiv 2407.21783)."""
DAY = 86_400
SIZES = (8, 64, 512, 4096, 10_000)
PER_REPLICA, SLOTS, STEP_S, GROUP = 4, 16, 0.04, 8
WRITE_S = 60
FIXED_GROUPS = 32
"""The batch of 64 GPUs, where the batch does not grow with the GPUs."""
SHORT = {4096: DAY // 12}
"""Seconds of a size whose publications are most of the work where the batch does not grow."""
WORDS = (
    "seed=17",
    f"group_size={GROUP}",
    "prompt_tokens=512",
    "response_tokens={name: pareto, least: 5400, tail: 1.5, at_most: 131072}",
    f"rollout.slots={SLOTS}",
    "rollout.kv_tokens=null",
    f"rollout.step_s={STEP_S}",
    "rollout.prefill_s_per_token=0.00002",
    f"rollout.mtbf_s={DEVICE_HOURS * 3600 / PER_REPLICA}",
    "rollout.repair_s=600",
    "verifier.seconds={name: gamma, mean: 2, shape: 2}",
    "verifier.timeout_s=60",
    "trainer.fixed_s=1",
    "trainer.optimizer_s=1",
    "trainer.logprob_s_per_token=0",
    "trainer.restart_s=600",
    "publication={prepare_s: 3, activate_s: 2, bytes: 0, in_flight: pause}",
    "synthetic.ratio_sd_per_lag=0",
)


@dataclass(frozen=True)
class Kind:
    """A sweep over sizes, each for a day or its seconds in `short`: `groups` a batch whatever the size, or null for as
    many as GPUs that train."""

    name: str
    says: str
    overlap: str
    groups: int | None = None
    sizes: Sequence[int] = SIZES
    short: Mapping[int, int] = field(default_factory=dict)


KINDS = (
    Kind("asynchronous", "the batch grows with the GPUs; a queue of at most a batch", "shallow"),
    Kind("synchronous", "the batch grows with the GPUs; a barrier", "synchronous"),
    Kind(
        "fixed batch",
        f"always {FIXED_GROUPS} x {GROUP} completions; a queue of at most a batch",
        "shallow",
        FIXED_GROUPS,
        SIZES[:-1],
        SHORT,
    ),
)


def words(kind: Kind, devices: int, seconds: float) -> list[str]:
    """What `rlaxes plan simulate --figures-only` is asked for a size. A checkpoint is written at `I*` for the GPUs that
    train, to the nearest batch."""
    training = devices // 2
    between = job_between_failures(DEVICE_HOURS * 3600, training)
    groups = kind.groups or training
    replicas = training // PER_REPLICA
    limit = "null" if kind.overlap == "synchronous" else groups * GROUP
    asked = [
        *WORDS,
        f"overlap={kind.overlap}",
        f"seconds={seconds}",
        f"batch={{groups: {groups}, tokens: null, minibatches: 1, inner_epochs: 1}}",
        f"rollout.replicas={replicas}",
        f"verifier.workers={max(devices // 8, 4)}",
        f"trainer.s_per_token={0.0085 / training}",
        f"trainer.mtbf_s={between}",
        f"queue={{records: {limit}, tokens: null, bytes: null, age_s: null, lag: null}}",
    ]
    (plain,) = settings_of(asked)
    decoding = groups * GROUP * plain.response_tokens.mean * STEP_S / (replicas * SLOTS)
    every = max(round(best_interval(WRITE_S, between) / max(decoding, 10)), 1)
    return [*asked, f"checkpoint={{every: {every}, seconds: {WRITE_S}, background: false, queue: keep}}"]


def scaled(kind: Kind, devices: int, seconds: float) -> Settings:
    """The settings of a size."""
    (settings,) = settings_of(words(kind, devices, seconds))
    return settings


def row(kind: Kind, devices: int, seconds: float) -> dict[str, Any]:
    """The figures of one size.

    `not_decoding` is the share of the replicas' decoding capacity (every slot, all the time) that made no token which
    ended before the run did; `not_training` the share of the time in which the trainer's GPUs do not train; `idle` the
    mean of the two, since each half has as many GPUs. `in_vain` is lost and repeated tokens over all of these and the
    trained ones.
    """
    settings = scaled(kind, devices, seconds)
    begin = time.process_time()
    done = simulate(settings)
    cpu = time.process_time() - begin
    found = done.figures
    trained = found["tokens_per_s"] * done.seconds
    vain = found["lost_tokens"] + found["redone_tokens"]
    capacity = settings.rollout.replicas * SLOTS / STEP_S * done.seconds
    not_decoding = max(1 - (trained + vain) / capacity, 0.0)
    return found | {
        "devices": devices,
        "groups": settings.batch.groups,
        "every": settings.checkpoint.every,
        "tokens_per_s_per_device": found["tokens_per_s"] / devices,
        "not_decoding": not_decoding,
        "not_training": 1 - found["trainer_busy"],
        "idle": (not_decoding + 1 - found["trainer_busy"]) / 2,
        "in_vain": vain / (trained + vain),
        "stopped": (found["restart_s"] + found["checkpoint_s"]) / done.seconds,
        "expected": devices * done.seconds / 3600 / DEVICE_HOURS,
        "interruptions": found["replica_deaths"] + found["restarts"],
        "rollouts": found["trained_rollouts"],
        "cpu": cpu,
    }


COLUMNS = {
    "devices": ("GPUs", "{:,.0f}"),
    "seconds": ("simulated, s", "{:,.0f}"),
    "groups": ("groups a batch", "{:,.0f}"),
    "steps": ("steps", "{:,.0f}"),
    "tokens_per_s_per_device": ("tokens/s a GPU", "{:.1f}"),
    "lag_mean": ("lag, mean", "{:.2f}"),
    "lag_p95": ("p95", "{:.0f}"),
    "lag_max": ("largest", "{:.0f}"),
    "not_decoding": ("not decoding", "{:.1%}"),
    "not_training": ("not training", "{:.1%}"),
    "idle": ("GPUs idle", "{:.1%}"),
    "expected": ("interruptions expected", "{:.2f}"),
    "interruptions": ("drawn", "{:.0f}"),
    "restarts": ("of the job", "{:.0f}"),
    "in_vain": ("tokens in vain", "{:.3%}"),
    "stopped": ("checkpoints and restarts", "{:.2%}"),
    "every": ("batches a checkpoint", "{:.0f}"),
    "rollouts": ("rollouts trained", "{:,.0f}"),
    "cpu": ("CPU, s", "{:.0f}"),
}


def line(found: Mapping[str, Any]) -> str:
    """A row in Markdown."""
    cells = ["—" if found[key] is None else form.format(found[key]) for key, (_, form) in COLUMNS.items()]
    return "| " + " | ".join(cells) + " |"


def row_of(kind: str, devices: int) -> dict[str, Any]:
    """The figures of one size of the sweep of that name; what a job calls."""
    (found,) = [one for one in KINDS if one.name == kind]
    return row(found, devices, found.short.get(devices, DAY))


def main() -> None:
    """Simulate every size of every sweep, as many at once as there are cores, and print a table for each sweep."""
    asked = [(kind.name, devices) for kind in KINDS for devices in kind.sizes]
    jobs = [
        Job(
            f"{name}-{devices}".replace(" ", "-"),
            "benchmarks.simulated_scale:row_of",
            {"kind": name, "devices": devices},
        )
        for name, devices in asked
    ]
    launcher = compose_choices(["launcher=submitit_local"])[0].config["launcher"]
    with tempfile.TemporaryDirectory() as folder:
        ended = launch(jobs, Path(folder), launcher, usable_cores(), lambda text: print(text, file=sys.stderr))
    found = dict(zip(asked, ended, strict=True))
    for kind in KINDS:
        print(f"\n## {kind.name.capitalize()}: {kind.says}\n")
        print("| " + " | ".join(title for title, _ in COLUMNS.values()) + " |")
        print("|" + "---|" * len(COLUMNS))
        for devices in kind.sizes:
            one = found[kind.name, devices]
            print(line(one.result) if one.died is None else f"{devices:,} GPUs: {one.died}")
