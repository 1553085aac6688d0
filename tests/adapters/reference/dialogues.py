"""An engine that says what it is told, for tests of what is said in several turns. Standard library only."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.reference.engine import Completion, Finished
from adapters.reference.messages import Answer, Request
from adapters.reference.samples import Sample, samples_of
from adapters.reference.turns import conduct
from harness.task.bundle import Prompt
from harness.task.verifier import Verdict

EOS, SAID, TOLD = 1, 50, 900
"""Sampled tokens lie from `SAID` on, those of observations from `TOLD` on: no doubt whose a token is."""


@dataclass
class Parrot:
    """Serves made-up completions; each call is served by the next of `versions`."""

    draw: random.Random
    versions: list[int]
    most: int = 4
    calls: list[list[list[int]]] = field(default_factory=list)
    said: list[Completion] = field(default_factory=list)

    def serve(self, prompts: Sequence[Sequence[int]], n: int, finished: Finished | None = None) -> Answer:
        """See `turns.Serve`."""
        version = self.versions[min(len(self.calls), len(self.versions) - 1)]
        self.calls.append([list(prompt) for prompt in prompts])
        groups = [[self._say() for _ in range(n)] for _ in prompts]
        for number, group in enumerate(groups):
            if finished is not None:
                finished(number, group)
        return Answer(groups, version, version)

    def _say(self) -> Completion:
        tokens = [SAID + self.draw.randrange(9) for _ in range(self.draw.randint(1, self.most))]
        ends = self.draw.random() < 0.7
        tokens = [*tokens[:-1], EOS] if ends else tokens
        # Of 16 bits, so that the ledger's float32 holds them exactly.
        logprobs: list[float | None] = [-self.draw.randrange(1, 2**12) / 2**8 for _ in tokens]
        now = 1_000 * len(self.calls)
        said = Completion(
            tokens, logprobs, "eos" if ends else "length", "reported", now, now + 1, now + 2, now + 2 + len(tokens)
        )
        self.said.append(said)
        return said


def prompt(number: int, told: Sequence[int]) -> Prompt:
    """A prompt after whose turns the environment says so many tokens each."""
    ids = [[TOLD + place for place in range(length)] for length in told]
    meta: dict[str, Any] = {"observations": [f"<{len(each)}>" for each in ids], "observation_ids": ids}
    return Prompt(f"p{number}", [], "", meta, "", [2, 3, 4][: 1 + number % 3])


def dialogues(seed: int, told: Sequence[Sequence[int]], versions: list[int], group: int = 2) -> tuple[Parrot, Answer]:
    """The trajectories of a request, and the engine that served them."""
    parrot = Parrot(random.Random(seed), versions)
    return parrot, conduct(asked(told, group), parrot.serve)


def asked(told: Sequence[Sequence[int]], group: int = 2) -> Request:
    """A request for prompts with such observations."""
    prompts = [prompt(number, lengths) for number, lengths in enumerate(told)]
    return Request("gen-0", prompts, group, 4, 0, 0)


def samples(seed: int, told: Sequence[Sequence[int]], versions: list[int], group: int = 2) -> list[Sample]:
    """Such trajectories as samples with a verdict."""
    _, answer = dialogues(seed, told, versions, group)
    made = samples_of(answer, asked(told, group), 0, stop_at_eos=True)
    for number, sample in enumerate(made):
        sample.text, sample.verdict = (
            f"said {number}",
            Verdict(float(number % 2), {"correctness": float(number % 2)}, t_start=10**6, t_end=10**6 + 1),
        )
    return made
