"""What the settings let through, stage by stage, in tokens a second; and what is not worth simulating [12.3.4]."""

from dataclasses import dataclass

from harness.errors import UserError
from harness.simulate.draws import Distribution
from harness.simulate.settings import Limits, Settings
from harness.theory.queue import growth


@dataclass(frozen=True)
class Rates:
    """Policy tokens a second that each stage can do if it never waits: means of the settings, no tails, no barriers."""

    rollout: float
    verifier: float
    trainer: float

    @property
    def arrival(self) -> float:
        """Into the queue, as long as admission is open."""
        return min(self.rollout, self.verifier)


def rates_of(settings: Settings) -> Rates:
    """The rates that follow from the settings' means."""
    rollout, length, prompt = settings.rollout, settings.response_tokens.mean, settings.prompt_tokens.mean
    together = rollout.slots
    if rollout.kv_tokens:
        together = max(min(together, int(rollout.kv_tokens // (prompt + length))), 1)
    computed = prompt if rollout.request == "sample" else prompt / settings.group_size
    alone = (length - 1) * rollout.step(together) / together + computed * rollout.prefill_s_per_token
    up = 1.0 if rollout.mtbf_s is None else rollout.mtbf_s / (rollout.mtbf_s + rollout.repair_s)
    verdict = settings.verifier.seconds.mean
    scored = settings.verifier.workers * length / verdict if verdict else float("inf")
    tokens = batch_tokens(settings)
    cycle = settings.trainer.seconds(tokens, settings.batch) + settings.publication.prepare_s
    return Rates(rollout.replicas * up * length / alone, scored, tokens / cycle)


def batch_tokens(settings: Settings) -> float:
    """Policy tokens of a training batch, on average; where they are counted, at least."""
    if settings.batch.tokens is not None:
        return float(settings.batch.tokens)
    return (settings.batch.groups or 1) * settings.group_size * settings.response_tokens.mean


def check(settings: Settings) -> None:
    """Refuse what could not be simulated, or would never end.

    Raises:
        UserError: names the setting.
    """
    for wrong, why in _wrong(settings):
        if wrong:
            raise UserError(why)
    found = rates_of(settings)
    grows = growth(found.arrival, found.trainer)
    if grows > 0 and not settings.synchronous and not _bounded(settings):
        raise UserError(
            f"the queue has no limit and is unstable: {found.arrival:,.0f} tokens/s arrive, {found.trainer:,.0f} are "
            f"served, so it grows by {grows:,.0f} tokens/s without end; give lag_bound or a limit of queue"
        )


def _wrong(settings: Settings) -> list[tuple[bool, str]]:
    batch, rollout, trainer = settings.batch, settings.rollout, settings.trainer
    longest = _most(settings.response_tokens), _most(settings.prompt_tokens)
    room = rollout.kv_tokens
    asynchronous = not settings.synchronous
    return [
        (settings.seconds is None and settings.steps is None, "neither seconds nor steps is given: it would never end"),
        ((batch.groups is None) == (batch.tokens is None), "give either batch.groups or batch.tokens, not both"),
        (
            rollout.request == "part" and batch.groups is None,
            "rollout.request=part needs batch.groups: a batch that is told by its tokens has no parts",
        ),
        (
            settings.placement == "colocated" and asynchronous,
            "placement=colocated with synchrony=asynchronous: who shares devices takes turns; give one of them",
        ),
        (rollout.step(1) <= 0, "rollout.step_s and rollout.step_s_per_sequence are both 0: decoding takes no time"),
        (trainer.seconds(1, batch) <= 0, "trainer: every stage takes no time, so that the run would never end"),
        (
            room is not None and None in longest,
            f"rollout.kv_tokens={room}: a completion may not fit; give at_most of response_tokens and prompt_tokens",
        ),
        (
            room is not None and None not in longest and sum(map(float, longest)) > room,  # type: ignore[arg-type]
            f"rollout.kv_tokens={room}: the longest prompt and completion, {longest[1]} and {longest[0]}, do not fit",
        ),
        (settings.trainer.jitter.mean <= 0, "trainer.jitter has the mean 0: every stage would take no time"),
    ]


def _most(distribution: Distribution) -> float | None:
    if distribution.values is not None:
        return float(distribution.values.max())
    fixed = distribution.parameters.get("value", distribution.parameters.get("high"))
    return distribution.at_most if distribution.at_most is not None else fixed


def _bounded(settings: Settings) -> bool:
    limits: Limits = settings.queue
    own = (limits.records, limits.tokens, limits.bytes, limits.age_s, limits.lag, settings.lag_bound)
    return any(limit is not None for limit in own)
