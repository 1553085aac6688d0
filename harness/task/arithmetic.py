"""The `arithmetic` task: `12+7=` in one chat message, scored on the exact integer."""

import random
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from harness.errors import UserError
from harness.task.problem import Canary, Problem, Score, Scorer, Split, read_settings

# Raise it whenever `read_answer` or the weights change what any completion scores.
VERSION = "arithmetic-1"

_NUMBER = re.compile(r"[0-9]+(?:,[0-9]{3})*(?![0-9])(?:\.[0-9]+)?")
_OPERATIONS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}
Draw = TypeVar("Draw", bound=Hashable)


@dataclass(frozen=True)
class ArithmeticSettings:
    """`operators` is any of `+-*`; operands lie in 0..`max_operand`; `prompt` holds `{expression}`.

    With `format_weight` w the reward is `correctness + w * format`, format being 1 for a bare integer and nothing else.
    """

    count: int = 512
    seed: int = 0
    operators: str = "+-"
    max_operand: int = 20
    prompt: str = "{expression}="
    format_weight: float = 0.0

    def __post_init__(self) -> None:
        unknown = sorted(set(self.operators) - set(_OPERATIONS))
        if unknown or not self.operators:
            raise UserError(f"task.problems.operators is {self.operators!r}; use one or more of {''.join(_OPERATIONS)}")
        if self.max_operand < 1 or self.count < 1:
            raise UserError("task.problems.max_operand and task.problems.count must be at least 1")
        if "{expression}" not in self.prompt:
            raise UserError(f"task.problems.prompt is {self.prompt!r}; it must hold {{expression}}")


def _draws(settings: ArithmeticSettings, split: Split) -> Iterator[tuple[str, int, int]]:
    # Only Random.random() keeps its sequence across Python versions; randrange, choice and shuffle may change.
    source = random.Random(f"arithmetic/{split}/{settings.seed}")
    operators, operands = len(settings.operators), settings.max_operand + 1
    while True:
        operator = settings.operators[int(source.random() * operators)]
        yield operator, int(source.random() * operands), int(source.random() * operands)


def distinct(draws: Iterator[Draw], every: int) -> Iterator[Draw]:
    """The draws with none twice before all `every` that can be drawn came once."""
    seen: set[Draw] = set()
    for draw in draws:
        if draw in seen:
            continue
        seen.add(draw)
        yield draw
        if len(seen) == every:
            seen.clear()


def read_answer(text: str) -> str | None:
    """The last number in `text` in lowest form (`"-7"`), or None where there is none or it is not an integer.

    A minus right after a digit or a closing bracket subtracts, anywhere else it is a sign. Text, not int: a model may
    write more digits than Python converts.
    """
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return None
    found = numbers[-1]
    whole, _, fraction = found.group().replace(",", "").partition(".")
    if fraction.strip("0"):
        return None
    before = text[: found.start()].rstrip()
    signed = before.endswith(("-", "\N{MINUS SIGN}")) and not re.search(r"[0-9)]\s*.$", before, re.DOTALL)
    digits = whole.lstrip("0") or "0"
    return f"-{digits}" if signed and digits != "0" else digits


class Arithmetic:
    """See `harness.task.problem.TaskKind`."""

    turns = 1

    def problems(self, settings: Mapping[str, Any], split: Split, count: int) -> list[Problem]:
        """`count` questions, drawn without repeats until all have been asked."""
        chosen = read_settings(ArithmeticSettings, settings, "task.problems")
        every = len(set(chosen.operators)) * (chosen.max_operand + 1) ** 2
        made = []
        for index, (operator, left, right) in zip(range(count), distinct(_draws(chosen, split), every), strict=False):
            expression = f"{left}{operator}{right}"
            content = chosen.prompt.replace("{expression}", expression)
            answer = str(_OPERATIONS[operator](left, right))
            messages = [{"role": "user", "content": content}]
            made.append(Problem(f"arithmetic-{index:05d}", messages, answer, {"expression": expression}))
        return made

    def version(self, settings: Mapping[str, Any]) -> str:
        """The rule's version and, where the format counts, its weight."""
        weight = read_settings(ArithmeticSettings, settings, "task.problems").format_weight
        return f"{VERSION}+format*{weight:g}" if weight else VERSION

    def scorer(self, settings: Mapping[str, Any]) -> Scorer:
        """`correctness` (and `format` where weighted), each 1.0 or 0.0."""
        weight = read_settings(ArithmeticSettings, settings, "task.problems").format_weight

        def score(problem: Problem, text: str) -> Score:
            components = {"correctness": float(read_answer(text) == problem.answer)}
            if weight:
                components["format"] = float(re.fullmatch(r"\s*-?[0-9]+\s*", text) is not None)
            return Score(components["correctness"] + weight * components.get("format", 0.0), components)

        return score

    def canary(self, _settings: Mapping[str, Any], problems: list[Problem]) -> Canary:
        """The first problem's answer, and that answer plus one."""
        first = problems[0]
        return Canary(first.prompt_id, right=first.answer, wrong=str(int(first.answer) + 1), wrong_at_most=0.0)
