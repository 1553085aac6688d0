"""Two splits of the same GPUs: which queue drains and which fills, by formula and in the simulator."""

from dataclasses import dataclass

from harness.simulate.profiles import settings_of
from harness.simulate.simulate import simulate
from harness.theory.queue import starving_share, utilisation
from harness.validate.table import published

GPUS = 32
GROUPS, SAMPLES, LIMIT = 8, 4, 2
"""Of a simulated batch; batches that the simulated queue may hold."""
TRAIN_S = 10.0
"""Simulated seconds of a batch on half of the GPUs."""


@dataclass(frozen=True)
class SplitQueue:
    """A split's queue: `rho` and the trainer's starving share by formula; in the simulator the mean depth over the
    limit, the time for which admission was closed, and the share in which the trainer waits."""

    name: str
    reported: str
    rho: float
    starving: float
    depth: float
    closed: float
    waiting: float


def rate_ratio() -> float:
    """r: what a GPU that rolls out puts into the queue over what one that trains takes out. From the two printed times:
    16 + 16 is limited by its rollout, at `16 r`, and 24 + 8 by its training, at 8, so their times are as `8 : 16 r`."""
    drains, fills = published().splits
    longer = float(fills["dynamic_over"]) / float(drains["dynamic_over"])
    return float(fills["split"][1]) / (float(drains["split"][0]) * longer)


def best_moved() -> float:
    """What a schedule that moves GPUs can take at best over 24 + 8: both rates equal at `32 r / (1 + r)`."""
    ratio = rate_ratio()
    return float(published().splits[1]["split"][1]) / (GPUS * ratio / (1 + ratio))


def queues() -> list[SplitQueue]:
    """Both splits."""
    out = []
    for row in published().splits:
        rolling, training = row["split"]
        rates = rolling * rate_ratio(), float(training)
        found = _simulated(rolling, training)
        out.append(
            SplitQueue(row["id"], row["queue"], utilisation(*rates), starving_share(*rates), *found),
        )
    return out


def _simulated(rolling: int, training: int) -> tuple[float, float, float]:
    mean, records = 1000, GROUPS * SAMPLES
    step_s = TRAIN_S / (rate_ratio() * records * mean / (GPUS / 2))
    (settings,) = settings_of(
        [
            "overlap=shallow",
            "seconds=null",
            "steps=120",
            f"group_size={SAMPLES}",
            f"response_tokens={{name: lognormal, mean: {mean}, sigma: 0.8, at_most: 8000}}",
            f"batch={{groups: {GROUPS}, tokens: null, minibatches: 1, inner_epochs: 1}}",
            f"rollout.replicas={rolling}",
            "rollout.kv_tokens=null",
            f"rollout.step_s={step_s}",
            "rollout.prefill_s_per_token=0",
            f"trainer.fixed_s={TRAIN_S * GPUS / 2 / training}",
            "trainer.s_per_token=0",
            "trainer.optimizer_s=0",
            "trainer.logprob_s_per_token=0",
            "publication={prepare_s: 0, activate_s: 0, bytes: 0, in_flight: pause}",
            f"queue={{records: {LIMIT * records}, tokens: null, bytes: null, age_s: null, lag: null}}",
        ]
    )
    figures = simulate(settings).figures
    depth = figures["depth_mean_tokens"] / (LIMIT * records * mean)
    return depth, figures["backpressure"], figures["trainer_waiting"]
