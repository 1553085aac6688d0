"""How near a framework comes to each task setting: the rows of the fidelity table, of what was asked and what is held.

A framework says what is its own: what it means that it holds another value (`different`), and what to know of a setting
that it holds as asked (`special`).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.execute.adapter import Fidelity

Held = Mapping[str, Any]
Judged = tuple[Literal["exact", "approximated", "unsupported"], str]
Judge = Callable[[Held, Held], Judged]
"""Takes the task and what the framework's objects held; gives the grade and what to know."""

CHECKED_BY_HARNESS = ("name", "warmup_steps", "verifier_timeout_s", "problems", "dataset", "generator")
"""Task keys that no framework sees: the harness itself carries them out, the same for every one."""
OF_THE_DIVISION = ("std_ddof", "advantage_eps")
"""Task keys that mean something only where advantages are divided by a deviation."""


@dataclass(frozen=True)
class FrameworkFidelity:
    """What one framework makes of task settings.

    Attributes:
        title: its name in sentences.
        different: by setting, the grade and the reason where it holds another value than asked.
        special: by setting, the judge of one that it holds as asked.
    """

    title: str
    different: Mapping[str, Judged] = field(default_factory=dict)
    special: Mapping[str, Judge] = field(default_factory=dict)

    def rows(self, task: Held, held: Held) -> list[Fidelity]:
        """One row a task setting, in the task's order; `held` has a setting's value under its own name."""
        return [self._row(setting, asked, task, held) for setting, asked in task.items()]

    def _row(self, setting: str, asked: Any, task: Held, held: Held) -> Fidelity:
        if setting in CHECKED_BY_HARNESS:
            return Fidelity(setting, asked, asked, "exact", f"the harness's own; {self.title} does not see it")
        if setting not in held:
            return Fidelity(setting, asked, None, "unsupported", f"{self.title} has no such setting")
        if setting in OF_THE_DIVISION and task["advantage_std"] == "none":
            return Fidelity(setting, asked, None, "exact", "not used: advantages are not divided")
        if not _same(asked, held[setting]):
            other: Judged = ("approximated", f"{self.title}'s objects hold another value than asked")
            return Fidelity(setting, asked, held[setting], *self.different.get(setting, other))
        grade, note = self.special.get(setting, plain)(task, held)
        return Fidelity(setting, asked, held[setting], grade, note)


def plain(_: Held, __: Held) -> Judged:
    """Nothing to know."""
    return "exact", ""


def _same(asked: Any, held: Any) -> bool:
    """Numbers may have gone through text and come back as another type."""
    if isinstance(asked, int | float) and isinstance(held, int | float):
        return math.isclose(asked, held, rel_tol=1e-9)
    return bool(asked == held)
