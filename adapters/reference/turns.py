"""The turns of a trajectory: after each turn but the last the environment says something, and the policy goes on.

A later turn is a request of its own, whose prompt is everything before it. Only what the policy sampled is its own: an
observation has mask 0 and no log-prob, and stands under the version of the turn before it. Standard library only.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from adapters.reference.engine import Completion, Finished
from adapters.reference.messages import Answer, Request
from harness.task.bundle import Prompt

Serve = Callable[[Sequence[Sequence[int]], int, Finished | None], Answer]
"""Completions of prompts (token ids), so many of each, and the version that sampled them; see `Engine.generate`."""


def longest_prompt(prompts: Sequence[Prompt], max_tokens: int) -> int:
    """Tokens of the longest prompt that an engine is given: a last turn's, after turns of `max_tokens` tokens each."""
    return max(
        len(prompt.token_ids) + sum(max_tokens + len(observation) for observation in prompt.observation_ids)
        for prompt in prompts
    )


def conduct(request: Request, serve: Serve, finished: Finished | None = None) -> Answer:
    """Take every trajectory of a request through its turns; `finished` is told of each group that is whole with its
    first turn, at once.

    A trajectory ends with its prompt's last turn, or with a turn that did not end with EOS (its token limit came
    first). Turn k of all trajectories is one call of `serve`. The answer's versions are those of the first turn;
    where a later turn was served by another one, each token says its own.
    """
    first = serve([prompt.token_ids for prompt in request.prompts], request.group_size, _of_one_turn(request, finished))
    prompts = [prompt for prompt in request.prompts for _ in range(request.group_size)]
    paths = [completion for group in first.groups for completion in group]
    turn = 0
    while going := [at for at, path in enumerate(paths) if _goes_on(path, prompts[at], turn)]:
        told = [prompts[at].observation_ids[turn] for at in going]
        asked = [
            [*prompts[at].token_ids, *paths[at].tokens, *observation]
            for at, observation in zip(going, told, strict=True)
        ]
        answer = serve(asked, 1, None)
        for at, observation, (said,) in zip(going, told, answer.groups, strict=True):
            before = _versions(paths[at], first.policy_version)
            after = _versions(said, answer.policy_version)
            paths[at] = _extended(paths[at], observation, said, [*before, *before[-1:] * len(observation), *after])
        turn += 1
    size = request.group_size
    named = [_named(path, first.policy_version) for path in paths]
    groups = [named[at : at + size] for at in range(0, len(named), size)]
    return replace(first, groups=groups)


def _of_one_turn(request: Request, finished: Finished | None) -> Finished | None:
    if finished is None:
        return None

    def told(number: int, group: list[Completion]) -> None:
        if not request.prompts[number].observation_ids:
            finished(number, group)

    return told


def _goes_on(path: Completion, prompt: Prompt, turn: int) -> bool:
    return path.stop_reason == "eos" and turn < len(prompt.observation_ids)


def _versions(completion: Completion, version: int) -> list[int]:
    return completion.versions or [version] * len(completion.tokens)


def _extended(before: Completion, observation: Sequence[int], said: Completion, versions: list[int]) -> Completion:
    """A trajectory and its next turn; it was queued and started with its first turn, and ends as its last one does."""
    return replace(
        said,
        tokens=[*before.tokens, *observation, *said.tokens],
        logprobs=[*before.logprobs, *[None] * len(observation), *said.logprobs],
        mask=[*before.policy_mask, *[0] * len(observation), *said.policy_mask],
        versions=versions,
        t_queued=before.t_queued,
        t_start=before.t_start,
        t_first=before.t_first,
    )


def _named(path: Completion, version: int) -> Completion:
    """Versions only where they say more than the answer's own."""
    return path if path.versions is None or set(path.versions) != {version} else replace(path, versions=None)
