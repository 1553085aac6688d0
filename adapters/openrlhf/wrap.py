"""Puts a function of ours around a method of a framework's class."""

import functools
from collections.abc import Callable
from typing import Any

Around = Callable[..., Any]
"""Called as `around(original, self, *args, **kwargs)` in place of the method."""


def wrap(owner: Any, name: str, around: Around) -> None:
    """Replace `owner.name` by a call of `around`, which is given the original first."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        return around(original, self, *args, **kwargs)

    setattr(owner, name, wrapped)
