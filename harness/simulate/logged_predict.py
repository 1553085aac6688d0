"""What a logged loop would do in another layout: its steps as batches of one request, and what a log cannot tell."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from harness.simulate.calibrate import Calibration
from harness.simulate.calibrate_predict import Prediction, Variant, predict
from harness.simulate.calibrate_spans import SIDE_OF, SIDES, Batches, Floats
from harness.simulate.logged import Logged

PLACEMENTS = ("colocated", "disaggregated")
GRAIN = 1000
"""Parts of a mean generation in which the simulator counts its seconds."""
NO_HAND_OVER = (
    "handing weights from one pool of devices to another was not logged: give transfer_s= (its seconds a step), or "
    "ingest a log of a disaggregated run"
)
NO_SHARING = (
    "what sharing devices takes (waking, loading, moving weights) was not logged: ingest a log of a colocated run"
)
NO_PREPARING = (
    "what may be prepared beside training has no key in a log: measure a cell of colocated_sync, which has its stage"
)


@dataclass(frozen=True)
class Asked:
    """What a log does not hold and somebody has to say.

    Attributes:
        placement: one of `PLACEMENTS`.
        samples: completions of a step; None: as logged.
        transfer_s: seconds a step of handing weights from one pool to another, where the log is of a colocated run.
    """

    placement: str
    samples: int | None
    transfer_s: float | None


def counted_tokens(found: Logged, asked: Asked) -> Floats | None:
    """Tokens of completions [steps]: as logged, else mean length times completions; None where either is missing."""
    if found.tokens is not None:
        return found.tokens
    samples = found.samples if asked.samples is None else asked.samples
    return None if found.lengths is None or samples is None else found.lengths * samples


def calibrate_logged(found: Logged, asked: Asked) -> Calibration:
    """A batch is one request, whose length is its logged seconds of generation: nothing within a batch is simulated,
    because nothing within it is logged. What of a step is in no stage stays with the trainer, and is not overlapped
    with its other work."""
    none: Floats = np.zeros_like(found.busy)
    generation = found.stages["generate"]
    steps = np.maximum(np.round(generation / generation.mean() * GRAIN), 1.0)
    tokens = counted_tokens(found, asked)
    rest = np.maximum(found.period - found.busy, 0.0)
    batches = Batches(
        stages={stage: found.stages.get(stage, none) for stage in SIDE_OF},
        within=dict.fromkeys(SIDES, none) | {"train": rest},
        between=dict.fromkeys(SIDES, none),
        steps=steps,
        tokens=steps + 1.0,
        lengths=tuple(np.array([length]) for length in steps + 1.0),
        repeat=np.zeros(len(steps), dtype=np.int64),
        counted=np.full(len(steps), np.nan) if tokens is None else tokens,
    )
    return Calibration(
        run=found.run,
        cell=found.framework,
        placement=asked.placement,
        device="logged",
        groups=1,
        group_size=1,
        updates=1,
        prompt_tokens=1.0,
        replicas=1,
        ranks=1,
        rollout_threads=1,
        trainer_threads=1,
        cores=None,
        limits={},
        batches=batches,
    )


def predict_logged(
    calibration: Calibration, asked: Asked, variant: Variant, *, batches: int, resamples: int, seed: int
) -> Prediction:
    """As `predict`; refused where the log does not hold what the layout adds."""
    if why := _refused(asked, variant):
        return Prediction(variant, {}, {}, why)
    if variant.placement != asked.placement:
        measured = calibration.batches
        moved = measured.stages["weight_sync"] + (asked.transfer_s or 0.0)
        apart = replace(measured, stages=measured.stages | {"weight_sync": moved})
        calibration = replace(calibration, placement=variant.placement, batches=apart)
    told = predict(calibration, variant, batches=batches, resamples=resamples, seed=seed)
    idle = max(0.0, 1.0 - _trainer(calibration.batches) / told.figures["period_s"])
    intervals = {name: ends for name, ends in told.intervals.items() if name != "trainer_idle"}
    return replace(told, figures=told.figures | {"trainer_idle": idle}, intervals=intervals)


def _trainer(batches: Batches) -> float:
    """Seconds of a typical step in which the trainer has something to do, what is in no stage included. It is idle in
    all others: waiting for a batch, or for a generation to end that a publication does not interrupt."""
    own = [stage for stage, side in SIDE_OF.items() if side in ("train", "publish", "keep")]
    return batches.part(*(batches.stages[stage] for stage in own), batches.within["train"])


def _refused(asked: Asked, variant: Variant) -> str | None:
    if variant.layout == "colocated_overlap":
        return NO_PREPARING
    if variant.placement == asked.placement:
        return None
    if variant.placement == "colocated":
        return NO_SHARING
    return NO_HAND_OVER if asked.transfer_s is None else None


def refused_beside(found: Logged) -> str:
    """Why an asynchronous log predicts no layout."""
    lacking = "" if "generate" in found.stages else "; seconds of generation by itself are missing"
    return (
        f"the log is of a loop whose stages ran side by side ({found.beside}), and what each takes alone cannot be "
        f"told{lacking}: ingest a log of a synchronous run"
    )


def not_held_by_log(found: Logged, asked: Asked | None) -> list[str]:
    """What a log says nothing about, each with the measurement that is missing. `asked` is None where nothing of the
    log is predicted."""
    said = []
    if found.beside is None and not found.mode:
        said.append(
            "that this run was synchronous: the log does not tell its mode, and is taken for one because nothing in it "
            "speaks of overlap"
        )
    if found.step is None:
        said.append("what of a step is in no stage: no key has the seconds of a step; the sum of stages is taken")
    if "weight_sync" not in found.stages:
        said.append("handing over weights: no key has its seconds by itself; they are in another stage, or in none")
    if asked is not None and counted_tokens(found, asked) is None:
        length = "" if found.lengths is not None else "the mean length of completions, and "
        said.append(f"tokens a second: {length}completions of a step are missing; give batch.groups= and group_size=")
    return [
        *said,
        "stragglers within a batch: at most a mean and a largest length are logged, and a batch is one request here; "
        "measure a cell, whose ledger has each completion",
        "the limit of the KV cache, and engines that preempt: no key says what was held back; measure a cell",
        "partial rollouts and weights that change within a completion: measure a cell with adapter.versions=token",
        "pauses of engines while weights are published: what is logged is the trainer's side; measure a cell of "
        "disaggregated_async",
        "waiting of an asynchronous loop (queues, limits, contention of any kind): measure a cell of "
        "disaggregated_async, or ingest a log of an asynchronous run to see its own",
        "records that are dropped or learned from less because of lag, and how lag changes lengths and rewards: "
        "measure a cell with lag",
        "another number of devices on either side: measure runs with other splits; `rlaxes plan pipeline` splits pools "
        "if both stages scale linearly",
    ]


def parts_of_log(found: Logged) -> Mapping[str, Floats]:
    """By our stage the seconds of each step, in the order of a loop; what is in no stage, and the wait, last."""
    parts = {stage: found.stages[stage] for stage in SIDE_OF if stage in found.stages}
    if found.waiting is not None:
        parts["waiting for rollouts"] = found.waiting
    if found.step is not None and found.beside is None:
        parts["in no stage"] = np.maximum(found.period - found.busy, 0.0)
    return parts
