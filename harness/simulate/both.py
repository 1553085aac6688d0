"""Tells two recorders the same."""

from collections.abc import Callable
from typing import Any

from harness.simulate.recorder import Recorder


class Both:
    """A `Recorder` that hands everything to two others, in their order."""

    def __init__(self, first: Recorder, second: Recorder) -> None:
        self._first, self._second = first, second

    def __getattr__(self, name: str) -> Callable[..., None]:
        ours, theirs = getattr(self._first, name), getattr(self._second, name)

        def tell(*arguments: Any) -> None:
            ours(*arguments)
            theirs(*arguments)

        return tell
