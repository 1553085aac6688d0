"""Writes one process's share of the ledger: an append-only Arrow IPC stream a table, in whole record batches."""

import atexit
import json
import os
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from harness.contract.invariants import Refusal, rollout_refusals
from harness.contract.schema import ORIGIN, SCHEMA_VERSION, WRITTEN, stored_schema

FLUSH_SECONDS = 1.0
FLUSH_ROWS = 4096
Row = Mapping[str, Any]


class BatchRefused(ValueError):
    """A batch of rollouts broke an invariant: all of it was rejected, and the refusals are in the `faults` table."""

    def __init__(self, refusals: Sequence[Refusal], records: int) -> None:
        first = refusals[0]
        super().__init__(
            f"batch of {records} rollouts refused: rule {first.rule} on {first.field} of {first.sample_id}: "
            f"{first.reason} ({len(refusals)} refusals)"
        )
        self.refusals = list(refusals)


class _Stream:
    """One table's stream: buffered rows, and the open IPC writer."""

    def __init__(self, path: Path, table: str, process: str, metadata: dict[str, str]) -> None:
        self.table, self.process = table, process
        self.rows: list[Row] = []
        self.flushes = self.written = 0
        self._sink = path.open("xb")
        self._writer = pa.ipc.new_stream(self._sink, stored_schema(table).with_metadata(metadata))

    def append(self, batch: pa.RecordBatch) -> None:
        origin = [
            pa.array([self.process] * len(batch), ORIGIN[0].type),
            pa.array([self.flushes] * len(batch), ORIGIN[1].type),
        ]
        columns = [*batch.columns, *origin]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema()))
        self._sink.flush()
        self.flushes += 1
        self.written += len(batch)

    def flush(self) -> None:
        if self.rows:
            rows, self.rows = self.rows, []
            self.append(to_batch(self.table, rows))

    def close(self) -> None:
        self.flush()
        self._writer.close()
        self._sink.close()

    def _schema(self) -> pa.Schema:
        return stored_schema(self.table)


def to_batch(table: str, rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows as a record batch of `table`.

    Raises:
        ValueError: a column that the table does not have, a missing one that may not be null, or a wrong type.
    """
    schema = WRITTEN[table]
    unknown = set().union(*rows) - set(schema.names)
    if unknown:
        raise ValueError(f"table {table} has no column {sorted(unknown)}")
    try:
        batch = pa.RecordBatch.from_pylist(list(rows), schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise ValueError(f"table {table}: {error}") from error
    for field in schema:
        if not field.nullable and batch[field.name].null_count:
            raise ValueError(f"table {table}: column {field.name} is missing in {batch[field.name].null_count} rows")
    return batch


class LedgerWriter:
    """The ledger of one process. Thread safe. `close` writes how many flushes and rows each table has, so that a
    missing one is found later; a ledger without that closing note is torn, and readable up to its last flush."""

    def __init__(self, directory: Path, process: str, run_id: str, *, by_the_clock: bool = True) -> None:
        """Open (and create) `directory` for the streams of `process`, a name that is unique within the cell. Without
        `by_the_clock` rows are flushed by their number alone, so that the same rows make the same streams."""
        directory.mkdir(parents=True, exist_ok=True)
        self._directory, self._process, self._run_id = directory, process, run_id
        self._streams: dict[str, _Stream] = {}
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._published: int | None = None
        self.write("manifest", [{"key": f"process:{process}", "value": json.dumps(identity(run_id))}])
        self.flush()
        # A process that dies of an exception still runs this; one that hangs writes no more rows, so the flush cannot
        # wait for the next one.
        atexit.register(self.flush)
        self._flusher = threading.Thread(target=self._flush_by_the_clock, name="ledger-flush", daemon=True)
        if by_the_clock:
            self._flusher.start()

    def write(self, table: str, rows: Sequence[Row]) -> None:
        """Buffer rows of any table but `rollouts`, whose batches go through `accept_batch`."""
        if table == "rollouts":
            raise ValueError("rollouts are written by accept_batch: a batch is accepted whole or rejected whole")
        if table not in WRITTEN:
            raise ValueError(f"no process writes a table {table}")
        with self._lock:
            self._stream(table).rows.extend(rows)
            if table == "publications":
                self._published = max(
                    [self._published or 0, *(int(row["policy_version"]) for row in rows if row["ok"])]
                )
            if len(self._stream(table).rows) >= FLUSH_ROWS:
                self._streams[table].flush()

    def accept_batch(self, rows: Sequence[Row]) -> None:
        """Write a batch of rollouts whole, or reject it whole (step 12.5.3).

        Raises:
            BatchRefused: an invariant is broken. The refusals stand in `faults`, every sample of the batch in `fates`
                as dropped, so that its tokens are still counted.
        """
        batch = to_batch("rollouts", rows)
        with self._lock:
            refusals = rollout_refusals(batch, self._published)
            if refusals:
                self._reject(batch, refusals)
                raise BatchRefused(refusals, len(batch))
            # A process that is killed now leaves no rollout whose generation it did not write down.
            if "spans" in self._streams:
                self._streams["spans"].flush()
            self._stream("rollouts").append(batch)

    def _reject(self, batch: pa.RecordBatch, refusals: Sequence[Refusal]) -> None:
        now = time.perf_counter_ns()
        self.write("faults", [_fault(refusal, now) for refusal in refusals])
        traces = dict.fromkeys(batch["trace_id"].to_pylist())
        why = f"{refusals[0].rule} on {refusals[0].field} of {refusals[0].sample_id}"
        self.write("faults", [_fault_row(now, "batch_refused", trace, why) for trace in traces])
        reason = f"refused:{refusals[0].rule}"
        fates = [
            {"sample_id": sample, "fate": "dropped", "reason": reason, "policy_tokens": count, "t": now}
            for sample, count in zip(batch["sample_id"].to_pylist(), _policy_tokens(batch), strict=True)
        ]
        self.write("fates", fates)
        self.flush()

    def flush(self) -> None:
        """Write every buffered row to disk."""
        with self._lock:
            for stream in self._streams.values():
                stream.flush()

    def flushes(self) -> dict[str, int]:
        """Flush, and say how many flushes of each table this process has written so far: rows of these survive the
        death of the process."""
        with self._lock:
            self.flush()
            return {table: stream.flushes for table, stream in self._streams.items()}

    def close(self) -> None:
        """Flush, write the closing note, close every stream. A closed writer refuses further rows."""
        self._closing.set()
        if self._flusher.is_alive():
            self._flusher.join()
        with self._lock:
            self.flush()
            counts = {name: {"flushes": s.flushes, "rows": s.written} for name, s in self._streams.items()}
            counts["manifest"] = {"flushes": counts["manifest"]["flushes"] + 1, "rows": counts["manifest"]["rows"] + 1}
            self.write("manifest", [{"key": f"closed:{self._process}", "value": json.dumps(counts)}])
            for stream in self._streams.values():
                stream.close()
            self._streams.clear()
        atexit.unregister(self.flush)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _stream(self, table: str) -> _Stream:
        if table not in self._streams:
            path = self._directory / f"{self._process}.{table}.arrows"
            metadata = {"rlaxes.schema_version": str(SCHEMA_VERSION), "rlaxes.table": table}
            self._streams[table] = _Stream(path, table, self._process, metadata)
        return self._streams[table]

    def _flush_by_the_clock(self) -> None:
        while not self._closing.wait(FLUSH_SECONDS):
            self.flush()


def identity(run_id: str) -> dict[str, Any]:
    """Who writes, and one wall-clock anchor, so that the monotonic clocks of several hosts can be lined up."""
    anchor = {"wall_ns": time.time_ns(), "perf_ns": time.perf_counter_ns()}
    return {"run_id": run_id, "pid": os.getpid(), "host": socket.gethostname(), "anchor": anchor}


def _policy_tokens(batch: pa.RecordBatch) -> list[int]:
    """Of each record, by its mask; where that cannot be the record's own, all its response counts."""
    columns = (batch[name].to_pylist() for name in ("prompt_tokens", "response_tokens", "policy_mask"))
    return [
        sum(map(bool, mask)) if len(mask) == len(prompt) + len(response) else len(response)
        for prompt, response, mask in zip(*columns, strict=True)
    ]


def _fault(refusal: Refusal, now: int) -> Row:
    broken = {"rule": refusal.rule, "sample_id": refusal.sample_id}
    return _fault_row(now, "record_refused", refusal.field, refusal.reason) | broken


def _fault_row(now: int, kind: str, where: str, detail: str) -> dict[str, Any]:
    return {"t": now, "kind": kind, "cause": "infrastructure", "where": where, "detail": detail}
