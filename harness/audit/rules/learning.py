"""Rewards, groups, lag and ratios: whether anything was learnt, and from what [12.1.4, 12.2.5, 12.4]."""

import math
from collections.abc import Iterator

from harness.audit.quantities import Case, Observation
from harness.audit.rule import Breach, Register

register = Register()
EXACT = 1e-7
"""Within this of 1 a ratio counts as exactly 1: float32 holds no more digits."""
SLACK = 1e-3


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
    share, spread = case.one("degenerate_fraction"), case.one("reward_std")
    highest, lowest = case.one("advantage_max"), case.one("advantage_min")
    shown: list[tuple[Observation, str]] = []
    if share is not None and share.value >= 1:
        shown.append((share, "every group's rewards are equal"))
    if spread is not None and spread.value == 0:
        shown.append((spread, "the rewards have no spread"))
    if highest is not None and lowest is not None and highest.value == 0 == lowest.value:
        shown.append((highest, "every advantage is 0"))
    for seen, told in shown[:1]:
        yield Breach(seen.where, told, "the step taught nothing: the cost of an informative update is infinite here")


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
    apart = [(seen, seen.value - 1) for name in ("ratio_mean", "ratio_max", "ratio_min") for seen in case.of(name)]
    apart += [(seen, seen.value) for seen in case.of("logprob_difference_max")]
    if lag is None or lag.value <= 0 or not apart:
        return
    if all(abs(size) <= EXACT for _, size in apart):
        yield Breach(
            apart[0][0].where,
            f"all ratios are 1 at a lag of {lag.value:g}",
            "the log-probabilities in the denominator were recomputed with the policy that trains, not kept from the "
            "one that sampled; or no update in between changed the weights",
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
    """The largest ratio is the cap itself, or the smallest is 0: what is printed is what was applied, not measured."""
    cap = case.one("ratio_cap")
    where = "mean, largest and effective sample size are of the weights that were applied"
    for ratio in case.of("ratio_max"):
        if cap is not None and math.isclose(ratio.value, cap.value, rel_tol=1e-6):
            told = f"the largest ratio is {ratio.value:g}, the cap"
            yield Breach(ratio.where, told, f"no ratio was above the cap; else {where}")
    for ratio in case.of("ratio_min"):
        if ratio.value == 0:
            told = "the smallest ratio is exactly 0, which no quotient of probabilities is"
            yield Breach(ratio.where, told, f"a log-ratio was below -87 (float32); else terms were masked, and {where}")


@register.rule("contradiction", "a ratio is no larger than the differences of its tokens make it", "trl#4772, trl#5814")
def ratio_beyond_differences(case: Case) -> Iterator[Breach]:
    """log of the largest ratio is at most the largest difference of a token, times the longest response for a product.

    Holds for a token's ratio, a completion's product and their geometric mean alike.
    """
    apart, longest = case.one("logprob_difference_max"), case.one("response_length_max")
    if apart is None or longest is None:
        return
    for ratio in case.of("ratio_max"):
        bound = apart.value * max(longest.value, 1.0)
        if ratio.value > 0 and math.log(ratio.value) > bound * (1 + SLACK) + SLACK:
            yield Breach(
                ratio.where,
                f"the largest ratio is {ratio.value:.6g}; differences of at most {apart.value:g} a token over at most "
                f"{longest.value:g} tokens make exp({bound:.4g})",
                "the two are of other tokens: one of them was masked or cut, or the denominators differ",
            )


@register.rule("suspect", "each prompt of a step has all of its responses", "verl#6673, verl#7155")
def samples_missing(case: Case) -> Iterator[Breach]:
    """Responses of a step against prompts x group size."""
    samples, prompts, size = case.one("samples"), case.one("prompts"), case.one("group_size")
    if samples is None or prompts is None or size is None:
        return
    wanted = prompts.value * size.value
    if samples.value != wanted:
        yield Breach(
            samples.where,
            f"{samples.value:g} responses, {prompts.value:g} prompts x {size.value:g} are {wanted:g}",
            "some were filtered, timed out or carried over; the step's rates and groups are of those that are left",
        )
