"""Bounds that hold for a number alone, or against a limit that its source names."""

import math
from collections.abc import Iterator

from harness.audit.quantities import QUANTITIES, Case
from harness.audit.rule import Breach, Register

register = Register()
SHARES = ("mfu", "clipped_share", "degenerate_fraction", "ess_share", "share")
ROUNDING = 1e-6
AMOUNTS = frozenset(name for name, (unit, _) in QUANTITIES.items() if unit in {"s", "tokens", "tokens/s", "bytes"})
LOG_ROOM = 1e-6
"""What float32 leaves above 0 in a log-probability."""


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
    for name in ("response_length_max", "response_length_mean"):
        for length in case.of(name):
            if length.value > cap.value:
                yield Breach(
                    length.where,
                    f"{name} {length.value:g} over the limit of {cap.value:g} tokens",
                    "the length was taken before the response was cut, or counts prompt or environment tokens",
                )


@register.rule("impossible", "times, tokens, lengths and counts are not negative", "definition")
def negative_amount(case: Case) -> Iterator[Breach]:
    """What is measured in seconds, tokens or bytes; a sentinel (-1) that stands for `unknown` is told by this too."""
    for seen in case.observations:
        if seen.quantity in AMOUNTS and seen.value < 0:
            yield Breach(seen.where, f"{seen.quantity} {seen.value:g}", "a negative number stands for `unknown` here")


@register.rule("impossible", "the log-probability of a sampled token is at most 0", "module 12.1.4")
def logprob_positive(case: Case) -> Iterator[Breach]:
    """A log-probability above 0."""
    for seen in case.of("logprob"):
        if seen.value > LOG_ROOM:
            yield Breach(seen.where, f"log-probability {seen.value:g}", "it is a log-ratio, or a loss with its sign")


@register.rule("impossible", "probabilities of one distribution add up to 1", "prime-rl#697")
def probabilities_do_not_add_up(case: Case) -> Iterator[Breach]:
    """Log-probabilities that were divided by the temperature, and not the logits, do not normalise."""
    for total in case.of("probability_sum"):
        if not math.isclose(total.value, 1.0, abs_tol=1e-3):
            yield Breach(
                total.where,
                f"the probabilities add up to {total.value:.6g}",
                "the log-probabilities were scaled by the temperature after the softmax; temperature acts on logits",
            )
