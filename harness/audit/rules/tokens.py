"""What is stored of single tokens: log-probabilities, masks, ids, advantages [12.1.2, 12.1.4]."""

import math
from collections.abc import Iterator

from harness.audit.quantities import Case
from harness.audit.rule import Breach, Register

register = Register()
LOG_ROOM = 1e-6
"""What float32 leaves above 0 in a log-probability."""


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


@register.rule("contradiction", "what the policy did not sample has no log-probability of it", "SkyRL#354")
def logprob_off_mask(case: Case) -> Iterator[Breach]:
    """A stored number beside a mask of 0: a mean that forgets the mask takes it for a probability of 1."""
    stored = list(case.of("off_mask_logprob"))
    if stored:
        yield Breach(
            stored[0].where,
            f"{len(stored)} tokens that the policy did not sample have a log-probability ({stored[0].value:g})",
            "every reader of it applies the mask; nothing in the record says so",
        )


@register.rule("contradiction", "padding and observations have no advantage", "trl#7024")
def advantage_off_mask(case: Case) -> Iterator[Breach]:
    """An advantage other than 0 where the mask is 0: rewards of padding went into it."""
    stored = [seen for seen in case.of("off_mask_advantage") if seen.value != 0]
    if stored:
        yield Breach(
            stored[0].where,
            f"{len(stored)} tokens that the policy did not sample have an advantage ({stored[0].value:g})",
            "the loss applies the mask afterwards, and no sum over later tokens ran over them",
        )


@register.rule("contradiction", "the trainer learns from the tokens that the engine sampled", "OpenRLHF#238")
def ids_changed(case: Case) -> Iterator[Breach]:
    """An id that is another one on arrival was not sampled: its behaviour log-probability is of another token."""
    for changed in case.of("ids_changed"):
        if changed.value > 0:
            yield Breach(
                changed.where,
                f"{changed.value:g} token ids differ from those that were sampled",
                "the text was tokenised again, or a cut response got another end, and such tokens are masked",
            )
