"""Rates against the counts, times and devices that they are made of [12.2.5]."""

from collections.abc import Iterator

from harness.audit.quantities import QUANTITIES, Case, Observation
from harness.audit.rule import Breach, Register

register = Register()
TOLERANCE = 0.02
"""Of a rate: what rounding and an average over unequal steps may add up to."""
FAR, NEAR = 0.10, 0.05
"""How far, of the tokens of one sample, a row may lie from what the other rows of its table agree on."""
WHOLE_DEVICES = 0.02


def _tokens(case: Case) -> Observation | None:
    return case.one("total_tokens") or case.one("response_tokens")


@register.rule(
    "contradiction", "a rate for each device is tokens over the step's time and all devices of the run", "verl#7049"
)
def devices_left_out(case: Case) -> Iterator[Breach]:
    """The devices that a rate was divided by, recovered from tokens, time and rate, against those that the run had."""
    tokens, step, declared = _tokens(case), case.one("step_seconds"), case.one("devices_declared")
    rate = case.one("tokens_per_second_per_device")
    if tokens is None or step is None or rate is None or declared is None or not rate.value or not step.value:
        return
    divisor = tokens.value / (step.value * rate.value)
    if abs(divisor / declared.value - 1) > WHOLE_DEVICES:
        right = tokens.value / (step.value * declared.value)
        yield Breach(
            rate.where,
            f"{rate.value:.6g} tokens/s for each device of {tokens.value:.6g} tokens in {step.value:.6g} s: divided by "
            f"{divisor:.4g} devices, the run has {declared.value:g} ({right:.6g} tokens/s for each of them)",
            f"only {divisor:.4g} of the {declared.value:g} devices had worked, or tokens of another kind were counted",
        )


@register.rule("contradiction", "a total is what one device does times the devices", "NeMo-RL#955, axolotl#3362")
def total_is_not_its_devices(case: Case) -> Iterator[Breach]:
    """Rates of the whole run and of one device, where both are printed and the devices are known."""
    devices = case.one("devices_declared") or case.one("devices")
    for unit in ("tokens", "flops"):
        named = QUANTITIES[f"{unit}_per_second"][0]
        total, each = case.one(f"{unit}_per_second"), case.one(f"{unit}_per_second_per_device")
        if total is None or each is None or devices is None or not each.value:
            continue
        if abs(total.value / each.value / devices.value - 1) > TOLERANCE:
            found = total.value / each.value
            yield Breach(
                each.where,
                f"{total.value:.6g} {named} in all and {each.value:.6g} for each device: {found:.4g} devices, the run "
                f"has {devices.value:g}",
                "one of the two is under the other's name, or some devices are left out of one of them",
            )


@register.rule("contradiction", "a rate of the run is its tokens over its time", "definition")
def rate_is_not_its_counts(case: Case) -> Iterator[Breach]:
    """Tokens over seconds, with and without the prompt, against the rate as printed."""
    step, rate = case.one("step_seconds"), case.one("tokens_per_second")
    counts = [one for name in ("total_tokens", "response_tokens") if (one := case.one(name))]
    if step is None or rate is None or not counts or not step.value or not rate.value:
        return
    if all(abs(one.value / step.value / rate.value - 1) > TOLERANCE for one in counts):
        made = " or ".join(f"{one.value / step.value:.6g} ({one.quantity})" for one in counts)
        factor = counts[0].value / step.value / rate.value
        yield Breach(
            rate.where,
            f"{rate.value:.6g} tokens/s printed, {made} from the same row",
            f"the rate were {factor:.3g} times as large; or its time is another (a wait, a stage), or its tokens are",
        )


@register.rule("contradiction", "a rate of full batches is their positions over the time of a step", "definition")
def rate_is_not_its_batch(case: Case) -> Iterator[Breach]:
    """Packed sequences x their length x devices over the step, against the rate: the range of the one over the slowest
    and the fastest step has to meet the range of the other, where the source gives them."""
    names = ("packed_per_device", "packed_length", "devices_declared", "step_seconds", "tokens_per_second")
    found = [one for name in names if (one := case.one(name)) is not None and one.value > 0]
    if len(found) < len(names):
        return
    count, length, devices, step, rate = found
    tokens = count.value * length.value * devices.value
    least, most = (tokens / (case.one(f"step_seconds_{end}") or step).value for end in ("max", "min"))
    lowest, highest = ((case.one(f"tokens_per_second_{end}") or rate).value for end in ("min", "max"))
    if highest * (1 + TOLERANCE) < least or lowest > most * (1 + TOLERANCE):
        made = tokens / step.value
        yield Breach(
            rate.where,
            f"{rate.value:.6g} tokens/s printed; {count.value:g} x {length.value:g} positions on each of "
            f"{devices.value:g} devices in {step.value:.6g} s are {made:.6g}, {made / rate.value:.3g} times as many",
            f"the rate's time is {tokens / rate.value:.6g} s a step, with what lies between the timers of two steps",
        )


@register.rule("suspect", "tokens do not come faster than they were generated", "prime-rl#2048")
def rate_of_a_wait(case: Case) -> Iterator[Breach]:
    """A rate far above that of the step before, over a far shorter time: what was in flight fell into it."""
    now, before = case, case.earlier
    if before is None:
        return
    pairs = [(now.one(name), before.one(name)) for name in ("tokens_per_second", "step_seconds")]
    (rate, rate_before), (step, step_before) = pairs
    if rate is None or rate_before is None or step is None or step_before is None or not rate_before.value:
        return
    if rate.value > 5 * rate_before.value and step.value < step_before.value / 5:
        both = rate.value * step.value + rate_before.value * step_before.value
        joint = both / (step.value + step_before.value)
        yield Breach(
            rate.where,
            f"{rate.value:.6g} tokens/s in {step.value:g} s after {rate_before.value:.6g} in {step_before.value:g} s",
            f"its rollouts were generated within it; over both steps the rate is {joint:.4g} tokens/s",
        )


@register.rule("contradiction", "rows of one table imply about the same prompt", "NeMo RL performance page")
def out_of_family(case: Case) -> Iterator[Breach]:
    """Rate x devices x time / samples less the response is the prompt; the rows of a table agree on it, or one is off.

    The middle of what the other rows imply is the quantity `prompt_of_family` (see `harness.audit.tables`).
    """
    for implied, wanted in _of_family(case):
        if abs(implied.value / wanted - 1) > FAR:
            yield Breach(
                implied.where,
                f"rate x devices x time / samples is {implied.value:.0f} tokens, where response and prompt are about "
                f"{wanted:.0f}",
                f"rate or time were {wanted / implied.value:.3g} times what is printed, or the row mixes two runs",
            )


@register.rule("suspect", "rows of one table imply about the same prompt", "NeMo RL performance page")
def near_family(case: Case) -> Iterator[Breach]:
    """The same at half the distance."""
    for implied, wanted in _of_family(case):
        if NEAR < abs(implied.value / wanted - 1) <= FAR:
            yield Breach(
                implied.where,
                f"{implied.value:.0f} tokens a sample, where the other rows suggest {wanted:.0f}",
                "prompts were longer in this run, or the step was averaged over other steps than the rate",
            )


def _of_family(case: Case) -> Iterator[tuple[Observation, float]]:
    """The tokens of a sample that a row implies, and those that its response and the other rows' prompt suggest."""
    implied, family = case.one("implied_sample_tokens"), case.one("prompt_of_family")
    length = case.one("response_length_mean")
    if implied is not None and family is not None and length is not None:
        yield implied, length.value + family.value
