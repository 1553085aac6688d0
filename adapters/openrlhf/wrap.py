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


def wrap_with_actors(module: Any, owner: Any, name: str, around: Around) -> None:
    """The same for `owner` and for the Ray actors of its module that inherit from it: Ray copies inherited methods into
    an actor's class when that is defined, which is before the module is ours to change."""
    wrap(owner, name, around)
    for found in list(vars(module).values()):
        actor = getattr(getattr(found, "__ray_metadata__", None), "modified_class", None)
        if isinstance(actor, type) and issubclass(actor, owner) and name in vars(actor):
            wrap(actor, name, around)
