"""Two versions of one adapter in one plan: what `rlaxes track` measures in turns."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import SystemFailure, UserError
from harness.execute.adapter import Adapter, find_adapter
from harness.execute.compose import UNDISTURBED, Choice
from harness.execute.environments import ensure_environment
from harness.execute.hook_check import hook_drift
from harness.execute.plan import variant_of
from harness.execute.session import choices_of
from harness.execute.uv_process import Say
from harness.execute.version import Version
from harness.execute.versions import find_version

REPEATS = 10
"""Pairs where the words do not say: five, at a noise of 2 %, would miss a change of 5 % in one part of a step."""


@dataclass(frozen=True)
class Tracked:
    """The two versions, and what their cells run.

    Attributes:
        pin, candidate: the versions; the second is held against the first.
        choices: for each layout and track that was asked for, the pin and then the candidate.
    """

    adapter: Adapter
    pin: Version
    candidate: Version
    choices: list[Choice]

    @property
    def labels(self) -> tuple[str, str]:
        """What reports call the pin and the candidate."""
        return self.choices[0].label, self.choices[1].label

    @property
    def same(self) -> bool:
        """Whether both come to the same code and the same packages, so that there is nothing to measure."""
        return self.pin.hash == self.candidate.hash


def tracked(overrides: Sequence[str], pin: str, candidate: str, say: Say, also: Sequence[str] = ()) -> Tracked:
    """What the words ask for.

    Args:
        also: requirements that the compiled locks of both hold besides.

    Raises:
        UserError: they name several adapters or a fault, or no version.
        PrerequisiteError: a version could not be fetched, built, or resolved.
    """
    given = [] if any(word.startswith("repeats=") for word in overrides) else [f"repeats={REPEATS}"]
    choices = choices_of([*overrides, *given], single=False)
    if len({choice.adapter for choice in choices}) > 1:
        raise UserError("`track` takes one adapter in two versions; for several adapters use `compare`")
    if any(choice.fault != UNDISTURBED for choice in choices):
        raise UserError("`track` compares undisturbed cells; for fault=... use `drill`")
    config = choices[0].config
    adapter = find_adapter(config["adapter"]["name"])
    sides = [find_version(adapter, variant_of(config), word, say, also) for word in (pin, candidate)]
    versioned = [replace(choice, version=side) for choice in choices for side in sides]
    return Tracked(adapter, sides[0], sides[1], versioned)


def drifted_hooks(asked: Tracked, say: Say) -> dict[str, list[str]]:
    """By label the hook points that a version no longer has; its environment is made for that.

    Raises:
        PrerequisiteError: an environment cannot be made.
    """
    found: dict[str, list[str]] = {}
    for label, version in zip(asked.labels, (asked.pin, asked.candidate), strict=True):
        python = Path(sys.executable)
        if version.lock:
            python = ensure_environment(asked.adapter.name, version.lock, asked.adapter.spec["python"], say).python
        try:
            messages = hook_drift(asked.adapter, python, version.source)
        except SystemFailure as error:
            messages = [f"whether hooks drifted is unknown, {error}"]
        if messages:
            found[label] = messages
    return found
