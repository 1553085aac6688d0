"""What a ledger says of the attempts at its cell: how each ended, and from where the next went on [12.5.3]."""

from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from harness.contract import RESUMED, CellLedger
from harness.measure.measure import UnmeasuredError

ATTEMPT = "attempt:"
"""The harness's note of how an attempt ended: `t_start`, `t_end` (perf_counter_ns), `returncode`."""


@dataclass(frozen=True)
class Resume:
    """An attempt that went on from a checkpoint, or, with `checkpoint` None, from the beginning.

    Attributes:
        kept: whether anything of the history before it stands.
        step, policy_version: that it goes on from.
        items: by item of step 12.5.1 its `state` (`restored`, `restarted`, `lost`), the digests `saved` and `found`,
            and the `evidence`.
        t: when it was ready (ns).
    """

    attempt: int
    kept: bool
    checkpoint: str | None
    step: int
    policy_version: int
    items: dict[str, dict[str, str]]
    t: int


def resumes_of(ledger: CellLedger) -> list[Resume]:
    """Every attempt that said where it goes on from, in their order."""
    notes = [(key, note) for key, note in ledger.manifest.items() if key.startswith(RESUMED)]
    found = [_resume(int(key.removeprefix(RESUMED)), note) for key, note in notes]
    return sorted(found, key=lambda resume: resume.attempt)


def _resume(attempt: int, note: dict[str, Any]) -> Resume:
    place = note["checkpoint"], note["step"], note["policy_version"]
    return Resume(attempt, note["mark"] is not None, *place, note["restored"], note["t"])


def some_resumes(ledger: CellLedger) -> list[Resume]:
    """The same.

    Raises:
        UnmeasuredError: there is none.
    """
    found = resumes_of(ledger)
    if not found:
        raise UnmeasuredError("no attempt at this cell went on from an earlier one")
    return found


def deaths_of(ledger: CellLedger) -> dict[int, tuple[int, int]]:
    """Begin and end (ns) of each attempt that another one followed."""
    ends = {
        int(key.removeprefix(ATTEMPT)): (int(note["t_start"]), int(note["t_end"]))
        for key, note in ledger.manifest.items()
        if key.startswith(ATTEMPT)
    }
    return {attempt: ends[attempt] for attempt in sorted(ends)[:-1]}


def checkpoints_of(ledger: CellLedger) -> list[dict[str, Any]]:
    """Checkpoints that were written whole, in their order, each with the attempt's process that wrote it."""
    rows = ledger.table("checkpoints").to_pylist()
    return sorted((row for row in rows if row["ok"]), key=lambda row: row["t_end"])


def some_checkpoints(ledger: CellLedger) -> list[dict[str, Any]]:
    """The same.

    Raises:
        UnmeasuredError: there is none.
    """
    found = checkpoints_of(ledger)
    if not found:
        raise UnmeasuredError("no checkpoint was written")
    return found


def stage_seconds(ledger: CellLedger, stage: str) -> list[float]:
    """The seconds of every span of a stage, of all attempts."""
    table = pq.read_table(ledger.path("spans"), columns=["t_start", "t_end"], filters=[("stage", "=", stage)])
    pairs = zip(table["t_start"].to_pylist(), table["t_end"].to_pylist(), strict=True)
    return [(end - start) / 1e9 for start, end in pairs]


def faults_of(ledger: CellLedger, kind: str) -> list[dict[str, Any]]:
    """The faults of a kind."""
    return [row for row in ledger.table("faults").to_pylist() if row["kind"] == kind]
