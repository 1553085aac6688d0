"""The contract: the record types and the ledger that any loop must leave behind.

Standard library and pyarrow only, so that it imports in every framework's environment.
"""

from harness.contract.attempts import RESUMED, process_name, split_name
from harness.contract.compact import compact
from harness.contract.direct import write_sealed
from harness.contract.invariants import Refusal, rollout_refusals
from harness.contract.ledger import PROCESS_DIED, ROLLOUTS_LOST, CellLedger, read_cell
from harness.contract.native import NativeSeries
from harness.contract.schema import QUEUE_EVENTS, ROLLED_BACK, SCHEMA_VERSION, STAGES, TABLES, WRITTEN
from harness.contract.writer import BatchRefused, LedgerWriter

__all__ = [
    "PROCESS_DIED",
    "QUEUE_EVENTS",
    "RESUMED",
    "ROLLED_BACK",
    "ROLLOUTS_LOST",
    "SCHEMA_VERSION",
    "STAGES",
    "TABLES",
    "WRITTEN",
    "BatchRefused",
    "CellLedger",
    "LedgerWriter",
    "NativeSeries",
    "Refusal",
    "compact",
    "process_name",
    "read_cell",
    "rollout_refusals",
    "split_name",
    "write_sealed",
]
