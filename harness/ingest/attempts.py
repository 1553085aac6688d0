"""Where a log begins anew: its step numbers run back, because the run was resumed or started again."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.ingest.reading import Block

NEVER = -(2**62)


@dataclass
class Attempt:
    """A stretch of a part (`scope`) of a file in which no series gives a step twice.

    Attributes:
        line: where it begins; of all but the first, where a step number ran back.
        first_step, last_step: the first and the highest; None where it names none.
    """

    scope: str
    line: int
    first_step: int | None = None
    last_step: int | None = None


class Attempts:
    """The attempts of each part of a file, found while its blocks pass by."""

    def __init__(self) -> None:
        self.by_scope: dict[str, list[Attempt]] = {}
        self._last: dict[str, npt.NDArray[np.int64]] = {}

    def number_of(self, block: Block, series: list[int]) -> int:
        """Which attempt of its scope a block belongs to. A training block that gives a series again, at a step that is
        not beyond the last one of it, begins the next.

        Args:
            series: the numbers of the block's values.
        """
        found = self.by_scope.get(block.scope)
        if found is None:
            found = self.by_scope[block.scope] = [Attempt(block.scope, block.line)]
            self._last[block.scope] = np.full(64, NEVER, np.int64)
        if block.step is None or block.kind != "training" or not series:
            return len(found) - 1
        last = self._room(block.scope, max(series))
        highest = found[-1].last_step
        if highest is not None and block.step <= highest and (last[series] >= block.step).any():
            found.append(Attempt(block.scope, block.line))
            last.fill(NEVER)
        last[series] = block.step
        now = found[-1]
        now.first_step = block.step if now.first_step is None else now.first_step
        now.last_step = block.step if now.last_step is None else max(now.last_step, block.step)
        return len(found) - 1

    def _room(self, scope: str, most: int) -> npt.NDArray[np.int64]:
        """The last step of each series of a scope, with room for a number of that size."""
        last = self._last[scope]
        if most >= len(last):
            last = np.concatenate([last, np.full(max(most + 1 - len(last), len(last)), NEVER, np.int64)])
            self._last[scope] = last
        return last
