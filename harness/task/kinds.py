"""The kinds of task by name."""

from harness.errors import UserError
from harness.task.arithmetic import Arithmetic
from harness.task.arithmetic_two_turn import ArithmeticTwoTurn
from harness.task.gym import ReasoningGym
from harness.task.problem import TaskKind, nearest

KINDS: dict[str, TaskKind] = {
    "arithmetic": Arithmetic(),
    "arithmetic_two_turn": ArithmeticTwoTurn(),
    "reasoning_gym": ReasoningGym(),
}


def kind_of(name: str) -> TaskKind:
    """The kind of task called `name`. Raises UserError naming the nearest one."""
    if name not in KINDS:
        raise UserError(f"no task is called {name!r}; did you mean {nearest(name, KINDS)!r}?")
    return KINDS[name]
