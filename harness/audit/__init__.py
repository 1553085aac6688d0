"""Are these numbers possible? Identities and bounds over ledgers, each a small named rule."""

from harness.audit.check import check_run
from harness.audit.violation import Violation

__all__ = ["Violation", "check_run"]
