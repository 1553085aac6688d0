"""The simulator beside a published sweep of the staleness budget.

verl lets `(1 + f) x 512` prompts be open from one publication to the next, and the next one opens as many again. The
simulator bounds what is open by whole batches, so each of its batches is a tenth of a step of verl's: `f = 0` is ten of
them open at once, `f = 0.5` fifteen, and weights are published after each. Neither the lengths of the responses nor the
engine's speed are published: the spread of the lengths is assumed, two of them, and the speed is fitted on `f = 0`.
"""

from dataclasses import dataclass
from functools import cache

from harness.simulate.profiles import settings_of
from harness.simulate.settings import Settings
from harness.simulate.simulate import simulate
from harness.validate.steps import async_rest
from harness.validate.table import published

BUDGETS = {0.0: "verl_fa_stale_0", 0.1: "verl_fa_stale_0.1", 0.3: "verl_fa_stale_0.3", 0.5: "verl_fa_7b_async_128"}
"""verl's `staleness_threshold`, and the row that was printed for it."""
SIGMAS = (0.5, 1.1)
"""Standard deviations of the logarithm of the lengths."""
PARTS, GROUPS, SAMPLES, STEPS = 10, 6, 16, 8
"""Batches of a step, groups of a batch (60 in a step in place of 512), completions of a group, steps."""
MEAN, MOST_TOKENS = 4000, 28_672
FITS = 3


@dataclass(frozen=True)
class Swept:
    """Seconds of a step that the trainer waits, and of the step, at one budget and one spread."""

    sigma: float
    budget: float
    wait: float
    step: float


def _settings(sigma: float, budget: float, step_s: float) -> Settings:
    fitted = published().stages[BUDGETS[0.0]]
    words = [
        "overlap=shallow",
        "seconds=null",
        f"steps={PARTS * STEPS}",
        f"group_size={SAMPLES}",
        f"response_tokens={{name: lognormal, mean: {MEAN}, sigma: {sigma}, at_most: {MOST_TOKENS}}}",
        f"batch={{groups: {GROUPS}, tokens: null, minibatches: 1, inner_epochs: 1}}",
        "rollout.replicas=1",
        f"rollout.slots={2 * PARTS * GROUPS * SAMPLES}",
        "rollout.kv_tokens=null",
        f"rollout.step_s={step_s}",
        "rollout.prefill_s_per_token=0",
        "verifier={workers: 1024, seconds: 0.01, timeout_s: 60}",
        f"trainer.fixed_s={fitted.training / PARTS}",
        "trainer.s_per_token=0",
        "trainer.optimizer_s=0",
        "trainer.logprob_s_per_token=0",
        "trainer.jitter=1",
        f"publication={{prepare_s: {async_rest() / PARTS}, activate_s: 0, bytes: 0, in_flight: pause}}",
        f"lag_bound={round(PARTS * (1 + budget)) - 1}",
        "queue.tokens=null",
    ]
    (settings,) = settings_of(words)
    return settings


def _swept(sigma: float, budget: float, step_s: float) -> Swept:
    figures = simulate(_settings(sigma, budget, step_s)).figures
    return Swept(sigma, budget, PARTS * figures["trainer_waiting"] * figures["period_s"], PARTS * figures["period_s"])


@cache
def staleness_sweep() -> list[Swept]:
    """Every budget at every spread."""
    wanted = published().stages[BUDGETS[0.0]].need("step")
    out = []
    for sigma in SIGMAS:
        step_s = 0.01
        for _ in range(FITS):
            step_s *= wanted / _swept(sigma, 0.0, step_s).step
        out += [_swept(sigma, budget, step_s) for budget in BUDGETS]
    return out
