"""The contract: the record types and the ledger that any loop must leave behind.

Standard library and pyarrow only, so that it imports in every framework's environment.
"""

from harness.contract.compact import compact
from harness.contract.invariants import Refusal, rollout_refusals
from harness.contract.ledger import CellLedger, read_cell
from harness.contract.schema import SCHEMA_VERSION, STAGES, TABLES
from harness.contract.writer import BatchRefused, LedgerWriter

__all__ = [
    "SCHEMA_VERSION",
    "STAGES",
    "TABLES",
    "BatchRefused",
    "CellLedger",
    "LedgerWriter",
    "Refusal",
    "compact",
    "read_cell",
    "rollout_refusals",
]
