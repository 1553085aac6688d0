"""What moves through a simulated loop: completions, the groups they belong to, and what a replica is asked at once."""

from dataclasses import dataclass
from typing import TypeAlias

Segment: TypeAlias = tuple[int, int, float, float]
"""A part of a completion: its policy version, its tokens, and when its decoding began and ended."""


class Sample:
    """One completion. Times in simulated seconds; `version` is the oldest of its tokens', `made` how many it
    had when its generation ended. `written` is for a recorder."""

    __slots__ = (
        "failed",
        "group",
        "length",
        "made",
        "number",
        "right",
        "segments",
        "t_end",
        "t_first",
        "t_start",
        "t_verified",
        "t_verify",
        "v_start",
        "version",
        "written",
    )

    def __init__(self, group: "Group", number: int, length: int) -> None:
        self.group, self.number, self.length = group, number, length
        self.version, self.made = -1, 0
        self.t_start = self.t_first = self.t_end = self.t_verify = self.t_verified = self.v_start = 0.0
        self.segments: list[Segment] | None = None
        self.failed = self.right = self.written = False


class Group:
    """The completions of one prompt, `size` of them, of which `left` are not verified yet. Once it is put into the
    queue `samples` are those that are still there, with their policy tokens and bytes; `judged` and `right` count all
    that got a verdict and what it was."""

    __slots__ = (
        "bytes",
        "judged",
        "left",
        "number",
        "prompt_tokens",
        "requests",
        "right",
        "samples",
        "size",
        "t_put",
        "tokens",
    )

    def __init__(self, number: int, prompt_tokens: int, lengths: list[int]) -> None:
        self.number, self.prompt_tokens = number, prompt_tokens
        self.samples = [Sample(self, place, length) for place, length in enumerate(lengths)]
        self.left = self.size = len(lengths)
        self.t_put = 0.0
        self.tokens = self.bytes = self.judged = self.right = 0
        self.requests: list[Request] = []

    @property
    def kept(self) -> list[Sample]:
        """Those that the verifier judged."""
        return [sample for sample in self.samples if not sample.failed]


class Request:
    """What a replica is asked at once; `left` of its completions are not generated yet."""

    __slots__ = ("groups", "lane", "left", "samples", "verifier", "worker")

    def __init__(self, samples: list[Sample], groups: list[Group]) -> None:
        self.samples, self.groups, self.left = samples, groups, len(samples)
        self.worker = ""
        self.lane = self.verifier = 0


@dataclass(eq=False)
class Ticket:
    """Groups that go into the queue together, in the order in which they were asked for."""

    groups: list[Group]
    waiting: int
