"""Bounds that hold for a number alone, or against a limit that its source names."""

import math
from collections.abc import Iterator

from harness.audit.quantities import QUANTITIES, Case
from harness.audit.rule import Breach, Register

register = Register()
SHARES = ("mfu", "clipped_share", "degenerate_fraction", "ess_share", "share")
ROUNDING = 1e-6
COUNTED = 0.005
"""What a printed share may lie off by, having few digits."""
ROOM = 1e-3
FINITE = ("loss", "grad_norm", "reward_mean", "reward_std", "advantage_max", "advantage_min", "ratio_mean", "ratio_max")
OTHER_WIDTH = "it was compared with the width of the padded batch, or with the longest response, and not with the limit"
AMOUNTS = frozenset(name for name, (unit, _) in QUANTITIES.items() if unit in {"s", "tokens", "tokens/s", "bytes"})


@register.rule("impossible", "a device does no more than its peak: MFU is at most 1", "NeMo-RL#955, verl#1208")
def mfu_over_one(case: Case) -> Iterator[Breach]:
    """MFU in a log, a table, or of ours."""
    for mfu in case.of("mfu"):
        if mfu.value > 1:
            yield Breach(
                mfu.where,
                f"MFU {mfu.value:g}",
                "the peak rate is another device's or precision's, or the rate is summed over devices and not divided",
            )


@register.rule("impossible", "a share lies between 0 and 1", "definition")
def share_outside(case: Case) -> Iterator[Breach]:
    """Every share but an MFU above 1, which has a rule of its own."""
    for name in SHARES:
        for share in case.of(name):
            if share.value < 0 or (share.value > 1 + ROUNDING and name != "mfu"):
                named = share.part or name
                yield Breach(
                    share.where, f"{named} {share.value:g}", "it is a percentage, or a sum, under a share's name"
                )


@register.rule("impossible", "no device holds more memory than it has", "vllm#33625, prime-rl#1118")
def memory_over_card(case: Case) -> Iterator[Breach]:
    """Peaks of the allocator against the device's size, where the source says which device it is."""
    card = case.one("memory_card")
    if card is None:
        return
    for name in ("memory_allocated", "memory_reserved", "memory_peak", "memory_used"):
        for peak in case.of(name):
            if peak.value > card.value:
                yield Breach(
                    peak.where,
                    f"{name} {peak.value / 1e9:.4g} GB on a device of {card.value / 1e9:.4g} GB",
                    "virtual memory counts twice after a sleep of the engine, or several devices are summed",
                )


@register.rule("impossible", "a response is no longer than its limit", "SkyRL#763")
def length_over_cap(case: Case) -> Iterator[Breach]:
    """The longest response, or the mean of them, against the limit that responses are cut at."""
    cap = case.one("length_cap")
    if cap is None:
        return
    for name in ("response_length_max", "response_length_mean", "response_length"):
        for length in case.of(name):
            if length.value > cap.value:
                yield Breach(
                    length.where,
                    f"{name} {length.value:g} over the limit of {cap.value:g} tokens",
                    "the length was taken before the response was cut, or counts prompt or environment tokens",
                )


@register.rule("impossible", "an allocator hands out no more than it holds", "prime-rl#1118, PR 1126")
def allocated_over_reserved(case: Case) -> Iterator[Breach]:
    """Peaks of one process: what was allocated lies within what was reserved."""
    allocated, reserved = case.one("memory_allocated"), case.one("memory_reserved")
    if allocated is not None and reserved is not None and allocated.value > reserved.value * (1 + ROUNDING):
        yield Breach(
            allocated.where,
            f"{allocated.value / 1e9:.4g} GB allocated, {reserved.value / 1e9:.4g} GB reserved",
            "the two are of different devices, moments or processes, or their names are swapped",
        )


@register.rule("contradiction", "a response is cut only where it reaches its limit", "verl#7817")
def clipped_below_limit(case: Case) -> Iterator[Breach]:
    """The share that is said to be cut, recounted from the lengths, or held against the longest of them."""
    share, cap = case.one("clipped_share"), case.one("length_cap")
    if share is None or cap is None:
        return
    lengths = [seen.value for seen in case.of("response_length")]
    longest = case.one("response_length_max")
    if lengths:
        right = sum(length >= cap.value for length in lengths) / len(lengths)
        if abs(right - share.value) > COUNTED:
            told = f"{share.value:g} said to be cut, {right:g} of {len(lengths)} lengths reach the limit {cap.value:g}"
            yield Breach(share.where, told, OTHER_WIDTH)
    elif longest is not None and share.value > 0 and longest.value < cap.value:
        told = f"{share.value:g} said to be cut, the longest response has {longest.value:g} of {cap.value:g} tokens"
        yield Breach(share.where, told, OTHER_WIDTH)


@register.rule("contradiction", "a mean lies between the smallest and the largest", "definition")
def mean_outside_extremes(case: Case) -> Iterator[Breach]:
    """Of rewards, lengths, ratios, lags, and differences of log-probabilities."""
    for kind in ("reward", "response_length", "ratio", "lag", "logprob_difference"):
        mean, low, high = (case.one(f"{kind}_{which}") for which in ("mean", "min", "max"))
        if mean is None:
            continue
        for end, way in ((low, -1), (high, 1)):
            if end is not None and way * (mean.value - end.value) > ROOM * max(abs(end.value), abs(mean.value)):
                yield Breach(
                    mean.where,
                    f"mean {mean.value:g} {'above the largest' if way > 0 else 'below the smallest'}, {end.value:g}",
                    "the two are of different sets of samples, or one of them was cut or masked and the other was not",
                )


@register.rule("suspect", "what training prints are numbers", "trl#5773, trl#5775")
def not_finite(case: Case) -> Iterator[Breach]:
    """Not a number, or infinite: loss, gradient, reward, advantage or ratio."""
    for seen in case.observations:
        if seen.quantity in FINITE and not math.isfinite(seen.value):
            yield Breach(
                seen.where,
                f"{seen.quantity} is {seen.value:g}",
                "the step was skipped for it; else it is in the weights (a group with one valid reward has no spread)",
            )


@register.rule("impossible", "times, tokens, lengths and counts are not negative", "definition")
def negative_amount(case: Case) -> Iterator[Breach]:
    """What is measured in seconds, tokens or bytes; a sentinel (-1) that stands for `unknown` is told by this too."""
    for seen in case.observations:
        if seen.quantity in AMOUNTS and seen.value < 0:
            yield Breach(seen.where, f"{seen.quantity} {seen.value:g}", "a negative number stands for `unknown` here")
