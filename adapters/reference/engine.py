"""The rollout engine as the loop sees it, and the clock that tells prefill from decode. Standard library only."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Protocol


@dataclass(frozen=True)
class Completion:
    """One completion, of one turn or of several with the environment's observations between them.

    Attributes:
        tokens: token ids, a sampled end-of-sequence token included.
        logprobs: of each token under the distribution it was really drawn from (after temperature, top-k, top-p and
            min-p, renormalised), at most 0; None for a token that the policy did not sample.
        stop_reason: `eos` or `length`.
        stop_source: `reported` where the engine says it, `derived` where it is read off the tokens.
        t_queued, t_start, t_first, t_end: submitted, first scheduled, first token, last token (perf_counter_ns).
        mask: 1 for a token that the policy sampled, 0 for one of an observation; None where all were sampled.
        versions: the policy version that sampled each token, an observation's that of the turn before it; None where
            one version sampled them all.
    """

    tokens: list[int]
    logprobs: list[float | None]
    stop_reason: str
    stop_source: str
    t_queued: int
    t_start: int
    t_first: int
    t_end: int
    mask: list[int] | None = None
    versions: list[int] | None = None

    @property
    def policy_mask(self) -> list[int]:
        """One value a token: 1 where the policy sampled it, else 0."""
        return [1] * len(self.tokens) if self.mask is None else self.mask

    @property
    def turns(self) -> list[list[int]]:
        """The tokens of each turn, observations left out."""
        if self.mask is None:
            return [self.tokens]
        runs = groupby(zip(self.tokens, self.mask, strict=True), key=lambda pair: pair[1])
        return [[token for token, _ in run] for sampled, run in runs if sampled]

    @property
    def policy_tokens(self) -> int:
        """How many tokens the policy sampled."""
        return len(self.tokens) if self.mask is None else sum(self.mask)


@dataclass(frozen=True)
class Phase:
    """A stretch of engine time of one kind, from the end of the stretch before it.

    Attributes:
        stage: `prefill` (every request in it was on its prompt), `decode` (none was), `generate` (both at once).
        forwards: forward passes.
        input_tokens: prompt tokens computed, each as often as it was computed; cached ones do not count.
        output_tokens: tokens sampled; a prompt's last forward pass samples the first token.
        records: the most requests that were in one forward pass.
    """

    stage: str
    t_start: int
    t_end: int
    forwards: int
    input_tokens: int
    output_tokens: int
    records: int


@dataclass(frozen=True)
class Generation:
    """`groups[i]` holds the completions of prompt i; `phases` lie end to end over the time of the call, but
    for changes of the weights in it."""

    groups: list[list[Completion]]
    phases: list[Phase]


Finished = Callable[[int, list[Completion]], None]


class Engine(Protocol):
    """Generates completions under one decoding rule, a part of the behaviour policy.

    `publish` gives it the weights that every later request is answered with.
    """

    name: str
    publication_kind: str

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        n: int,
        max_tokens: int,
        between: Callable[[], bool] | None = None,
        finished: Finished | None = None,
    ) -> Generation:
        """`n` completions of at most `max_tokens` tokens for each prompt's token ids, drawn by torch's default random
        generator under the decoding rule that the engine was made with.

        Args:
            between: called between two forward passes; it may call `publish`, and says whether it did. What was
                computed with the old weights is then computed again, and completions say each token's version.
            finished: called as soon as all completions of a prompt are there, with its number and the completions.

        Raises:
            SystemFailure: the engine lost or failed a request.
        """
        ...

    def publish(self, weights: Iterable[tuple[str, Any]], version: int) -> int:
        """Serve these named tensors, of that policy version, from now on; returns the bytes moved. It may keep the
        tensors and serve from them. Raises SystemFailure if it could not."""
        ...

    def close(self) -> None:
        """Free what the engine holds."""
        ...


class PhaseClock:
    """Collects phases: each engine step is charged the time since the step before it, scheduling included, so that
    no time between two steps is lost; neighbours of one kind are one phase."""

    def __init__(self) -> None:
        self._phases: list[Phase] = []
        self._edge = time.perf_counter_ns()
        self._joins = True

    def step(self, prefilling: int, decoding: int, input_tokens: int, output_tokens: int) -> int:
        """An engine step has just ended; counts are its requests on their prompt, requests past it, prompt tokens
        computed, and tokens sampled. Returns the time of its end."""
        stage = "generate" if prefilling and decoding else "prefill" if prefilling else "decode"
        end = time.perf_counter_ns()
        phase = Phase(stage, self._edge, end, 1, input_tokens, output_tokens, prefilling + decoding)
        if self._joins and self._phases and self._phases[-1].stage == stage:
            phase = _joined(self._phases.pop(), phase)
        self._phases.append(phase)
        self._edge, self._joins = end, True
        return end

    def skip(self) -> None:
        """What happened since the last step was no generation: no phase is charged for it."""
        self._edge, self._joins = time.perf_counter_ns(), False

    def stop(self) -> list[Phase]:
        """All phases; the last one is charged the time up to now (results are being handed over)."""
        if self._phases:
            self._phases[-1] = replace(self._phases[-1], t_end=time.perf_counter_ns())
        return self._phases


def _joined(first: Phase, second: Phase) -> Phase:
    return Phase(
        first.stage,
        first.t_start,
        second.t_end,
        first.forwards + second.forwards,
        first.input_tokens + second.input_tokens,
        first.output_tokens + second.output_tokens,
        max(first.records, second.records),
    )
