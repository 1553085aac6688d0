"""What the samples of a dumped step add up to, counted by us from the records: nothing here is a framework's figure."""

import hashlib
import math
from dataclasses import dataclass, field

KEY = "dump/"


@dataclass(frozen=True, slots=True)
class Sample:
    """One completion of a dump; None where the dump does not say.

    Attributes:
        group: what all completions of its prompt share: an id, or the prompt itself.
        text: prompt and completion, or the tokens of both; whatever tells it from another.
        empty: whether the completion has no character but white space, or no token.
        reward: its total reward; None also where it is no finite number.
        tokens: tokens that the policy sampled, where the dump has ids or a mask of them.
    """

    group: str | None
    text: str | None
    empty: bool | None
    reward: float | None
    tokens: int | None = None


@dataclass(slots=True)
class _Group:
    """Rewards of one prompt's samples: of each only what tells whether they are all equal."""

    size: int = 0
    judged: int = 0
    first: float = math.nan
    alike: bool = True

    def add(self, reward: float | None) -> None:
        self.size += 1
        if reward is None:
            return
        if not self.judged:
            self.first = reward
        self.judged += 1
        self.alike = self.alike and reward == self.first


@dataclass
class Range:
    """Count, sum, smallest and largest of numbers."""

    n: int = 0
    total: float = 0.0
    least: float = math.inf
    most: float = -math.inf

    def add(self, number: float | None) -> None:
        """One more, if it is one."""
        if number is not None:
            self.n, self.total = self.n + 1, self.total + number
            self.least, self.most = min(self.least, number), max(self.most, number)

    def values(self, name: str) -> dict[str, float]:
        """By key below `name`; empty where there is none."""
        if not self.n:
            return {}
        mean = {f"{name}/mean": self.total / self.n} if math.isfinite(self.total) else {}
        return mean | {f"{name}/min": self.least, f"{name}/max": self.most}


@dataclass
class Count:
    """Samples of one step, counted one by one. Of a prompt and of a text it keeps a digest of 8 bytes."""

    samples: int = 0
    unknown: set[str] = field(default_factory=set)
    empty: int = 0
    again: int = 0
    rewards: Range = field(default_factory=Range)
    tokens: Range = field(default_factory=Range)
    _groups: dict[bytes, _Group] = field(default_factory=dict)
    _texts: set[bytes] = field(default_factory=set)

    def add(self, sample: Sample) -> None:
        """One more of the step."""
        self.samples += 1
        self.unknown |= {name for name in ("group", "text", "empty", "tokens") if getattr(sample, name) is None}
        self.rewards.add(sample.reward)
        self.tokens.add(sample.tokens)
        self.empty += bool(sample.empty)
        if sample.group is not None:
            self._groups.setdefault(_digest(sample.group), _Group()).add(sample.reward)
        if sample.text is not None:
            text = _digest(sample.text)
            self.again += text in self._texts
            self._texts.add(text)

    def values(self) -> dict[str, float]:
        """All figures by key; one that a single sample lacks what it takes is left out for the whole step."""
        found = {"samples": float(self.samples)} | self.rewards.values("reward")
        if self.rewards.n < self.samples:
            found["without_reward"] = float(self.samples - self.rewards.n)
        if "group" not in self.unknown:
            found["prompts"] = float(len(self._groups))
            found |= self._degenerate()
        if "text" not in self.unknown:
            found["duplicates"] = float(self.again)
        if "empty" not in self.unknown:
            found["empty_completions"] = float(self.empty)
        if "tokens" not in self.unknown:
            found |= self.tokens.values("completion_tokens") | {"completion_tokens/sum": self.tokens.total}
        return {KEY + name: value for name, value in found.items()}

    def _degenerate(self) -> dict[str, float]:
        """Of groups of several samples that all have a reward, the share whose rewards are all equal."""
        judged = [group.alike for group in self._groups.values() if group.size > 1 and group.judged == group.size]
        return {"degenerate_fraction": sum(judged) / len(judged)} if judged else {}


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
