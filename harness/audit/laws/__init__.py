"""Is the ledger lawful? Identities between its tables, each an SQL query that returns the places where it breaks.

Sources: the identity chain is step 12.5.2, closure and lag MEASURES.md, atomic versions step 12.1.4, restarts 12.5.3.
"""

from harness.audit.laws import accounting, restarts, serving, task, timeline, training
from harness.audit.laws.law import MACROS, Law

LAWS: tuple[Law, ...] = (
    *accounting.LAWS,
    *training.LAWS,
    *serving.LAWS,
    *timeline.LAWS,
    *restarts.LAWS,
    *task.LAWS,
)

__all__ = ["LAWS", "MACROS", "Law"]
