"""Hook points as data, and the check that the installed framework still has each of them."""

import importlib
import inspect
from collections.abc import Iterable
from dataclasses import dataclass

from harness.errors import SystemFailure


class HookDrift(SystemFailure):
    """The installed framework is not the one that the adapter holds on to; the message begins with `hook drift`."""


@dataclass(frozen=True)
class HookPoint:
    """A place in a framework that an adapter holds on to.

    Attributes:
        target: `module:qualified.name`.
        stage: the stage of the contract that it bounds, or what it gives ("tokens", "version").
        why: what the adapter reads there.
        parameters: parameter names that must still exist, in any order.
    """

    target: str
    stage: str
    why: str
    parameters: tuple[str, ...] = ()


def verify_hooks(points: Iterable[HookPoint]) -> list[str]:
    """A message for each hook point that is gone, one for a module that cannot be imported; empty where all hold."""
    messages = [message for point in points if (message := _drift(point))]
    return list(dict.fromkeys(messages))


def require_hooks(messages: list[str]) -> None:
    """Raise HookDrift with all of them, if there are any."""
    if messages:
        raise HookDrift("; ".join(messages))


def _drift(point: HookPoint) -> str | None:
    module_name, _, qualified = point.target.partition(":")
    try:
        found: object = importlib.import_module(module_name)
    except ImportError as error:
        return f"hook drift: module {module_name} cannot be imported: {error}"
    for name in qualified.split("."):
        if not hasattr(found, name):
            return f"hook drift: {point.target} ({point.stage}) is gone: {point.why}"
        found = getattr(found, name)
    if not point.parameters or not callable(found):
        return None
    missing = set(point.parameters) - set(inspect.signature(found).parameters)
    return f"hook drift: {point.target} has no parameter {sorted(missing)} any more: {point.why}" if missing else None
