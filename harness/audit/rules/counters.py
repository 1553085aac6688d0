"""Counters and orders: what only grows, and what comes after what."""

import math
from collections.abc import Iterator

from harness.audit.quantities import Case
from harness.audit.rule import Breach, Register

register = Register()


@register.rule("contradiction", "a cumulative counter does not fall within a run", "definition")
def counter_falls(case: Case) -> Iterator[Breach]:
    """Against the step before."""
    now = case.one("cumulative_tokens")
    before = case.earlier.one("cumulative_tokens") if case.earlier else None
    if now and before and now.value < before.value:
        told = f"{now.value:.6g} after {before.value:.6g}"
        yield Breach(now.where, told, "the run was resumed here, or two runs wrote into one log")


@register.rule("contradiction", "a step's rate counts the step's tokens, not those since the start", "trl num_tokens")
def counter_over_one_step(case: Case) -> Iterator[Breach]:
    """A rate that equals the running total over one step's time, where the step's own tokens are far fewer."""
    total, step = case.one("cumulative_tokens"), case.one("step_seconds")
    before = case.earlier.one("cumulative_tokens") if case.earlier else None
    rate = case.one("tokens_per_second")
    if total is None or step is None or rate is None or before is None or not step.value or not rate.value:
        return
    own = total.value - before.value
    if math.isclose(rate.value, total.value / step.value, rel_tol=0.02) and own < 0.9 * total.value:
        yield Breach(
            rate.where,
            f"{rate.value:.6g} tokens/s is the total of {total.value:.6g} tokens over one step's {step.value:g} s",
            f"all tokens of the run fell into this step; its own {own:.6g} make {own / step.value:.6g} tokens/s",
        )


@register.rule("suspect", "step numbers rise", "prime-rl#1516, ms-swift#7080")
def step_runs_back(case: Case) -> Iterator[Breach]:
    """A step number at or below the one before it."""
    if case.earlier is None:
        return
    now = case.one("step_number")
    before = case.earlier.one("step_number")
    if now and before and now.value <= before.value:
        told = f"step {now.value:g} after step {before.value:g}"
        yield Breach(now.where, told, "the run was resumed, or two runs wrote into one log; the later value counts")
