"""What a team asks for."""

from dataclasses import dataclass
from typing import Any

import yaml

from harness.choose.topics import TOPICS

NEEDS = ("must", "wish", "indifferent")
OR = " or "


@dataclass(frozen=True)
class Requirement:
    """One requirement.

    Attributes:
        topic: a key of `TOPICS`.
        words: of the topic's vocabulary, of which any one meets it; of `allowed_lag` none.
        need: one of `NEEDS`.
        lag: of `allowed_lag`: the most optimizer updates; else None.
    """

    topic: str
    words: tuple[str, ...]
    need: str
    lag: int | None = None

    @property
    def values(self) -> frozenset[str]:
        """The values of the topic's axis of which any one meets it."""
        known = TOPICS[self.topic].words
        return frozenset(value for word in self.words for value in known[word].values)

    @property
    def asked(self) -> str:
        """What is asked, in words."""
        if self.lag is not None:
            return f"at most {self.lag} update{'' if self.lag == 1 else 's'}"
        return OR.join(self.words).replace("_", " ")


@dataclass(frozen=True)
class Requirements:
    """What was asked: a title, and the requirements in the order of the topics and of their needs."""

    decision: str
    asked: tuple[Requirement, ...]

    def of(self, topic: str, need: str | None = None) -> list[Requirement]:
        """Those of a topic (and of a need)."""
        return [one for one in self.asked if one.topic == topic and need in {None, one.need}]

    def as_yaml(self) -> str:
        """The file that reads as these."""
        told: dict[str, dict[str, list[Any]]] = {}
        for one in self.asked:
            word = one.lag if one.lag is not None else OR.join(one.words)
            told.setdefault(one.topic, {}).setdefault(one.need, []).append(word)
        return yaml.safe_dump({"decision": self.decision, "requirements": told}, sort_keys=False, allow_unicode=True)
