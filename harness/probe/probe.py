"""The probe: spans, records, and notes of one process, written to the cell's ledger."""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from harness.contract import STAGES, LedgerWriter
from harness.errors import HarnessBug
from harness.probe.memory import MemorySampler

CELL_VARIABLE = "RLAXES_CELL"
PROGRESS_SECONDS = 0.25


@dataclass
class Span:
    """What a stage reports of itself while it runs; the columns of the `spans` table."""

    records: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    policy_tokens: int = 0
    padded_tokens: int = 0
    detail: dict[str, Any] | None = None


class Probe:
    """One process's instrument. A disabled probe takes every call and does nothing (for the bare twin of a run)."""

    def __init__(self, cell: Mapping[str, Any], process: str = "main", *, enabled: bool = True) -> None:
        """Open the ledger of `process` (a name unique within the cell) under the cell's directory."""
        self.cell = dict(cell)
        self._directory = Path(cell["directory"])
        self._writer = LedgerWriter(self._directory / "streams", process, cell["run_id"]) if enabled else None
        self._memory = MemorySampler() if enabled else None
        self._last_progress = 0.0

    @classmethod
    def from_environment(cls, process: str = "main") -> Self:
        """The probe of the cell that `RLAXES_CELL` names; disabled where the cell is its own unobserved twin.

        Raises:
            HarnessBug: the variable is not set, so this process was not started by rlaxes.
        """
        path = os.environ.get(CELL_VARIABLE)
        if not path:
            raise HarnessBug(f"{CELL_VARIABLE} is not set: start this through `rlaxes run`")
        cell = json.loads(Path(path).read_text(encoding="utf-8"))
        return cls(cell, process, enabled=bool(cell["observer"]))

    @property
    def enabled(self) -> bool:
        """Whether this probe writes."""
        return self._writer is not None

    @contextmanager
    def span(
        self,
        stage: str,
        *,
        trace_id: str,
        policy_version: int | None = None,
        step: int | None = None,
        device: str = "cpu",
    ) -> Iterator[Span]:
        """Time a stage; the caller fills the counts of the yielded `Span`. A stage that raises is written too."""
        span = Span()
        if self._writer is None:
            yield span
            return
        cpu, start = time.process_time_ns(), time.perf_counter_ns()
        try:
            yield span
        finally:
            end, cpu_end = time.perf_counter_ns(), time.process_time_ns()
            detail = json.dumps(span.detail) if span.detail is not None else None
            counts: dict[str, Any] = {name: getattr(span, name) for name in _COUNTS}
            fields = {"policy_version": policy_version, "step": step, "device": device}
            counts |= {"cpu_ns": cpu_end - cpu, "detail": detail}
            self.add_span(stage, start, end, trace_id=trace_id, **fields, **counts)

    def add_span(self, stage: str, t_start: int, t_end: int, *, trace_id: str, **fields: Any) -> None:
        """Write a span that was timed elsewhere (perf_counter_ns); `fields` are columns of the `spans` table.

        Raises:
            HarnessBug: the stage is none of `STAGES`.
        """
        if self._writer is None:
            return
        if stage not in STAGES:
            raise HarnessBug(f"stage {stage} is none of {STAGES}")
        row = {**_DEFAULTS, **fields, "stage": stage, "t_start": t_start, "t_end": t_end, "trace_id": trace_id}
        self._writer.write("spans", [row])
        if self._memory is not None and (samples := self._memory.sample_if_due(stage)):
            self._writer.write("memory", samples)

    def accept_rollouts(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write a batch of rollouts, whole or not at all.

        Raises:
            BatchRefused: an invariant is broken; the refusals and fates of the batch are already in the ledger.
        """
        if self._writer is not None:
            self._writer.accept_batch(rows)

    def trained(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write one row for each sample that an optimizer step consumes."""
        self._write("trained", rows)

    def fates(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write what became of samples: exactly one row for each sample that was generated."""
        self._write("fates", rows)

    def update(self, **row: Any) -> None:
        """Write one optimizer step."""
        self._write("updates", [row])

    def publication(self, **row: Any) -> None:
        """Write one publication of weights to the rollout engine."""
        self._write("publications", [row])

    def fault(self, kind: str, cause: str, where: str, detail: str, **row: Any) -> None:
        """Write something that went wrong, and flush: the process may not live much longer."""
        if self._writer is not None:
            base = {"t": time.perf_counter_ns(), "kind": kind, "cause": cause, "where": where, "detail": detail}
            self._writer.write("faults", [base | row])
            self._writer.flush()

    def native(self, step: int | None, figures: Mapping[str, float]) -> None:
        """Write figures that the framework reports of itself."""
        now = time.perf_counter_ns()
        self._write("native", [{"t": now, "step": step, "key": key, "value": value} for key, value in figures.items()])

    def note(self, key: str, value: Any) -> None:
        """Write a fact about the run, as JSON."""
        self._write("manifest", [{"key": key, "value": json.dumps(value)}])

    def progress(self, done: int, total: int, text: str) -> None:
        """Tell the harness how far the run is; at most a few times a second reach the disk."""
        now = time.monotonic()
        if now - self._last_progress < PROGRESS_SECONDS and done < total:
            return
        self._last_progress = now
        partial = self._directory / "progress.partial"
        partial.write_text(json.dumps({"done": done, "total": total, "text": text}), encoding="utf-8")
        partial.replace(self._directory / "progress.json")

    def flush(self) -> None:
        """Write everything buffered to disk."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Write the closing note and close the ledger: the run has ended as it should."""
        if self._writer is not None:
            self.note("finished", value=True)
            self._writer.close()

    def _write(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        if self._writer is not None and rows:
            self._writer.write(table, rows)


_COUNTS = ("records", "input_tokens", "output_tokens", "policy_tokens", "padded_tokens")
_DEFAULTS: dict[str, Any] = dict.fromkeys(_COUNTS, 0) | {"device": "cpu"}
