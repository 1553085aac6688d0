"""The `arithmetic_two_turn` task: `3+4=`, the model's answer, then `\\n+5=` from the environment, and its answer.

What the environment says depends on the problem alone: it never says whether the first answer was right, and the second
sum is the true one whatever the first answer was.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import UserError
from harness.task.arithmetic import distinct, read_answer
from harness.task.problem import Canary, Problem, Score, Scorer, Split, read_settings
from harness.task.turns import join_turns, split_turns

# Raise it whenever the reading of answers or the reward's rule changes what any completion scores.
VERSION = "arithmetic-two-turn-1"


@dataclass(frozen=True)
class TwoTurnSettings:
    """Operands lie in 0..`max_operand`; `prompt` holds `{expression}`, `observation` `{operand}`.

    The reward is 1 where both answers are right, `partial` where one is, else 0.
    """

    count: int = 512
    seed: int = 0
    max_operand: int = 9
    prompt: str = "{expression}="
    observation: str = "\n+{operand}="
    partial: float = 0.5

    def __post_init__(self) -> None:
        if self.max_operand < 1 or self.count < 1:
            raise UserError("task.problems.max_operand and task.problems.count must be at least 1")
        if "{expression}" not in self.prompt:
            raise UserError(f"task.problems.prompt is {self.prompt!r}; it must hold {{expression}}")
        if "{operand}" not in self.observation:
            raise UserError(f"task.problems.observation is {self.observation!r}; it must hold {{operand}}")
        if not 0.0 <= self.partial < 1.0:
            raise UserError(f"task.problems.partial is {self.partial}; it must lie in 0..1, 1 left out")


def _draws(settings: TwoTurnSettings, split: Split) -> Iterator[tuple[int, int, int]]:
    # Only Random.random() keeps its sequence across Python versions.
    source = random.Random(f"arithmetic_two_turn/{split}/{settings.seed}")
    operands = settings.max_operand + 1
    while True:
        left, right, operand = (int(source.random() * operands) for _ in range(3))
        yield left, right, operand


class ArithmeticTwoTurn:
    """See `harness.task.problem.TaskKind`."""

    turns = 2

    def problems(self, settings: Mapping[str, Any], split: Split, count: int) -> list[Problem]:
        """`count` pairs of questions, drawn without repeats until all have been asked."""
        chosen = read_settings(TwoTurnSettings, settings, "task.problems")
        draws = distinct(_draws(chosen, split), (chosen.max_operand + 1) ** 3)
        return [_problem(chosen, index, *draw) for index, draw in zip(range(count), draws, strict=False)]

    def version(self, settings: Mapping[str, Any]) -> str:
        """The rule's version and what one right answer is worth."""
        return f"{VERSION}+partial*{read_settings(TwoTurnSettings, settings, 'task.problems').partial:g}"

    def scorer(self, settings: Mapping[str, Any]) -> Scorer:
        """`correctness` (both right), `first` and `second`, each 1.0 or 0.0; a turn not reached is not right."""
        partial = read_settings(TwoTurnSettings, settings, "task.problems").partial

        def score(problem: Problem, text: str) -> Score:
            answers, turns = split_turns(problem.answer), split_turns(text)
            if len(turns) > len(answers):
                raise ValueError(f"{len(turns)} turns where {problem.prompt_id} has {len(answers)}")
            said = [read_answer(turn) for turn in turns] + [None] * (len(answers) - len(turns))
            first, second = (found == answer for found, answer in zip(said, answers, strict=True))
            total = 1.0 if first and second else partial if first or second else 0.0
            return Score(
                total, {"correctness": float(first and second), "first": float(first), "second": float(second)}
            )

        return score

    def canary(self, _settings: Mapping[str, Any], problems: list[Problem]) -> Canary:
        """The first problem's answers; and the same with the second one too large by one."""
        first = problems[0]
        one, two = split_turns(first.answer)
        return Canary(first.prompt_id, right=first.answer, wrong=join_turns([one, str(int(two) + 1)]), wrong_at_most=0)


def _problem(settings: TwoTurnSettings, index: int, left: int, right: int, operand: int) -> Problem:
    expression = f"{left}+{right}"
    content = settings.prompt.replace("{expression}", expression)
    return Problem(
        f"arithmetic-two-turn-{index:05d}",
        [{"role": "user", "content": content}],
        join_turns([str(left + right), str(left + right + operand)]),
        {
            "expression": expression,
            "operand": operand,
            "observations": [settings.observation.replace("{operand}", str(operand))],
        },
    )
