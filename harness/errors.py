"""The kinds of error. Which one is raised decides what the user sees and what happens to the run."""


class RlaxesError(Exception):
    """Base of every error that rlaxes raises on purpose; its message is one clear line."""


class UserError(RlaxesError):
    """Something the user wrote is wrong; the message says what, where, and how to mend it."""


class PrerequisiteError(RlaxesError):
    """The machine lacks something; the message carries the command that installs it."""


class SystemFailure(RlaxesError):
    """The system under measurement failed; the harness turns it into a row with a cause and goes on."""


class CannotTell(RlaxesError):
    """The machine, as it is now, could not tell what was asked; what was measured is kept."""


class HarnessBug(RlaxesError):
    """rlaxes itself is wrong; the run stops."""
