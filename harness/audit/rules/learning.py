"""Rewards, groups, lag and ratios: whether anything was learnt, and from what [12.1.4, 12.2.5, 12.4]."""

import math
from collections.abc import Iterator

from harness.audit.quantities import Case
from harness.audit.rule import Breach, Register

register = Register()
EXACT = 1e-7
"""Within this of 1 a ratio counts as exactly 1: float32 holds no more digits."""


@register.rule("suspect", "some response is rewarded", "AReaL log of 2025-11-11")
def rewards_all_zero(case: Case) -> Iterator[Breach]:
    """Mean, largest and smallest reward all 0, or a mean of 0 where rewards cannot be negative."""
    mean = case.one("reward_mean")
    rest = [one.value for name in ("reward_max", "reward_min", "reward_std") for one in case.of(name)]
    if mean is not None and mean.value == 0 and not any(rest):
        yield Breach(mean.where, "every reward is 0", "the verifier scored: none was right, and none was partly right")


@register.rule("suspect", "a step has a group whose rewards differ", "trl#6365, autocontext#1067")
def groups_without_spread(case: Case) -> Iterator[Breach]:
    """No group has a gradient: nothing is learnt in such a step, whatever its loss and time."""
    share = case.one("degenerate_fraction")
    highest, lowest = case.one("advantage_max"), case.one("advantage_min")
    flat = highest is not None and lowest is not None and highest.value == 0 == lowest.value
    shown = share if share is not None and share.value >= 1 else highest if flat else None
    if shown is not None:
        told = "every group's rewards are equal" if shown is share else "every advantage is 0"
        yield Breach(shown.where, told, "the step taught nothing: the cost of an informative update is infinite here")


@register.rule("suspect", "a response of a batch ends before the limit", "autocontext#1067")
def all_clipped(case: Case) -> Iterator[Breach]:
    """Every response was cut: its end was never sampled."""
    share = case.one("clipped_share")
    if share is not None and share.value >= 1:
        yield Breach(share.where, "every response was cut by the limit", "the limit is too short for the task")


@register.rule("contradiction", "data that lags behind has ratios other than 1", "miles#1829")
def ratio_one_with_lag(case: Case) -> Iterator[Breach]:
    """Every ratio exactly 1 while versions say that the data is older than the policy."""
    lag = case.one("lag_mean") or case.one("lag_max")
    ratios = [*case.of("ratio_mean"), *case.of("ratio_max"), *case.of("ratio_min")]
    if lag is None or lag.value <= 0 or not ratios:
        return
    if all(abs(ratio.value - 1) <= EXACT for ratio in ratios):
        yield Breach(
            ratios[0].where,
            f"all ratios are 1 at a lag of {lag.value:g}",
            "the log-probabilities in the denominator were recomputed with the policy that trains, not kept from the "
            "one that sampled",
        )


@register.rule("contradiction", "the lag by versions keeps to the lag that the settings allow", "verl#4449, verl#6780")
def lag_beyond_config(case: Case) -> Iterator[Breach]:
    """Lag from versions against lag from settings."""
    allowed = case.one("lag_config")
    seen = case.one("lag_max") or case.one("lag_mean")
    if allowed is not None and seen is not None and seen.value > allowed.value:
        yield Breach(
            seen.where,
            f"lag {seen.value:g} by versions, {allowed.value:g} by the settings",
            "the settings count something else (batches in flight, samples), or the batch was generated ahead",
        )


@register.rule("suspect", "ratios are those before truncation", "trl#5231")
def ratios_after_truncation(case: Case) -> Iterator[Breach]:
    """The largest ratio is the cap itself: what is printed is what was applied, not what was measured."""
    cap = case.one("ratio_cap")
    if cap is None:
        return
    for ratio in case.of("ratio_max"):
        if math.isclose(ratio.value, cap.value, rel_tol=1e-6):
            yield Breach(
                ratio.where,
                f"the largest ratio is {ratio.value:g}, the cap",
                "no ratio was above the cap; else mean, largest and effective sample size are of truncated weights",
            )


@register.rule("suspect", "a sampled token has a log-probability below 0", "SkyRL#354")
def logprob_exactly_zero(case: Case) -> Iterator[Breach]:
    """Exactly 0 under an active mask: a placeholder of a token that the policy did not sample, or greedy decoding."""
    zeros = [seen for seen in case.of("logprob") if seen.value == 0]
    if zeros:
        yield Breach(
            zeros[0].where,
            f"{len(zeros)} log-probabilities are exactly 0 under an active mask",
            "decoding was greedy over a support of one token; else tokens of the environment count as the policy's",
        )
