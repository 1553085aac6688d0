"""What became of each completion: trained on, dropped and why, or in flight at the end [12.5.3]."""

from dataclasses import dataclass

import numpy as np

from harness.contract import CellLedger
from harness.contract.schema import FATES
from harness.measure.columns import Array, codes, integers

STALE = "rejected_stale"
"""How the reason of a completion begins that was dropped for its age; what follows names the policy and its value."""


@dataclass(frozen=True)
class Fates:
    """Columns in the order of the file.

    Attributes:
        fate: position in the contract's list of them.
        reason: code of `reasons`; -1 where none is given.
        tokens: policy tokens.
        t: when it was settled (ns).
    """

    fate: Array
    reason: Array
    reasons: list[str]
    tokens: Array
    t: Array

    def __len__(self) -> int:
        return len(self.fate)

    def are(self, name: str) -> Array:
        """Which ended so."""
        same: Array = self.fate == FATES.index(name)
        return same

    def stale(self) -> Array:
        """Which were dropped for their age."""
        known = [code for code, text in enumerate(self.reasons) if text.startswith(STALE)]
        chosen: Array = self.are("dropped") & np.isin(self.reason, known)
        return chosen


def read_fates(ledger: CellLedger) -> Fates:
    """Read the `fates` table but for its sample ids."""
    path = ledger.path("fates")
    fate, names = codes(path, "fate")
    reason, reasons = codes(path, "reason")
    table = ledger.table("fates", ["policy_tokens", "t"])
    places = np.array([FATES.index(name) for name in names], dtype=np.int8)
    tokens, t = integers(table["policy_tokens"], np.int32), integers(table["t"])
    return Fates(places[fate], reason, reasons, tokens, t)
