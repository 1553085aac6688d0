"""What is claimed of two runs side by side [12.1.5, 12.5.4]."""

from collections.abc import Iterator

from harness.audit.quantities import Case
from harness.audit.rule import Breach, Register

register = Register()
TWO_STAGES = 2.0
SAME_WORK = 0.05


@register.rule("suspect", "overlap of two stages makes a loop at most twice as fast", "module 12.1.5")
def overlap_beyond_two(case: Case) -> Iterator[Breach]:
    """(G + T) / max(G, T) is at most 2; what is above comes from elsewhere: a tail that was cut, another engine."""
    gain, tail = case.one("overlap_gain"), case.one("tail_gain")
    if gain is None:
        return
    allowed = TWO_STAGES * (tail.value if tail is not None else 1.0)
    if gain.value > allowed:
        yield Breach(
            gain.where,
            f"{gain.value:g} times as fast by overlapping two stages",
            f"a further {gain.value / TWO_STAGES:.3g} came from elsewhere: a tail that was cut, less work, an engine",
        )


@register.rule("suspect", "speeds compare where the work is the same", "module 12.2.5")
def other_work(case: Case) -> Iterator[Breach]:
    """Mean response lengths of two runs that are set side by side differ by over 5 %."""
    mine, other = case.one("response_length_mean"), case.one("response_length_of_other")
    if mine is None or other is None or not other.value:
        return
    apart = mine.value / other.value - 1
    if abs(apart) > SAME_WORK:
        yield Breach(
            mine.where,
            f"responses of {mine.value:.6g} tokens beside {other.value:.6g}: {apart:+.1%}",
            "tokens/s are compared, and not hours: the two did not do the same work",
        )
