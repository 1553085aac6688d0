"""What a task is made of: problems, scores, and the protocol that every kind of task follows."""

import dataclasses
import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from harness.errors import UserError

Message = dict[str, str]
# "prompts" are what the frameworks train on; "fit" is what a maker may warm a model up with.
Split = Literal["prompts", "fit"]
Settings = TypeVar("Settings")


@dataclass(frozen=True)
class Problem:
    """One question: chat messages, the right answer as text, and what its scorer needs besides (`meta`, JSON).

    Where the task has several turns, `answer` joins theirs (`harness.task.turns`), and `meta["observations"]` is what
    the environment says after each turn but the last.
    """

    prompt_id: str
    messages: list[Message]
    answer: str
    meta: dict[str, Any]


@dataclass(frozen=True)
class Score:
    """`total` is the reward that a framework trains on; `components` are its named parts, before weights."""

    total: float
    components: dict[str, float]


@dataclass(frozen=True)
class Canary:
    """Two completions of one problem with known correctness: 1 for `right`, at most `wrong_at_most` for `wrong`."""

    prompt_id: str
    right: str
    wrong: str
    wrong_at_most: float


Scorer = Callable[[Problem, str], Score]


class TaskKind(Protocol):
    """One kind of task. `settings` is the `problems` section of the task's config; `turns` are those of a completion,
    whose texts a scorer gets joined."""

    turns: int

    def problems(self, settings: Mapping[str, Any], split: Split, count: int) -> list[Problem]:
        """`count` problems, the same ones on every machine and Python version for the same settings."""

    def version(self, settings: Mapping[str, Any]) -> str:
        """Names the scoring rule: two runs with the same version score every completion alike."""

    def scorer(self, settings: Mapping[str, Any]) -> Scorer:
        """A function that scores one completion; it may raise, which is an error and never a reward of 0."""

    def canary(self, settings: Mapping[str, Any], problems: list[Problem]) -> Canary:
        """What every verifier must get right before it may reward anything."""


def read_settings(kind: type[Settings], values: Mapping[str, Any], where: str) -> Settings:
    """`values` as the dataclass `kind`. Raises UserError naming a key that does not exist and the nearest that does."""
    known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for key in values:
        if key not in known:
            raise UserError(f"{where}.{key} does not exist; did you mean {where}.{nearest(key, known)}?")
    return kind(**values)


def nearest(word: str, known: Iterable[str]) -> str:
    """The word of `known`, which must not be empty, that is most like `word`."""
    return difflib.get_close_matches(word, list(known), n=1, cutoff=0.0)[0]
