"""What the jobs of the tests call."""

import os
import signal

from harness.errors import UserError


def double(value: int) -> int:
    """Twice of it."""
    return 2 * value


def refuse() -> None:
    """A mistake of the user's."""
    raise UserError("this is not to be done")


def bug() -> None:
    """A mistake of ours."""
    raise ZeroDivisionError("by nothing")


def die() -> None:
    """What a job looks like that the machine took away."""
    os.kill(os.getpid(), signal.SIGKILL)
