"""The probe: spans, records, and notes of one process, written to the cell's ledger."""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from harness.contract import PROCESS_DIED, QUEUE_EVENTS, RESUMED, STAGES, LedgerWriter, process_name
from harness.errors import HarnessBug
from harness.probe.faults import PROCESSES
from harness.probe.memory import MemorySampler, pss_bytes

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
        """Open the ledger of `process` under the cell's directory, and say there in `processes/<process>` which process
        id that is in this attempt.

        Args:
            process: a name unique within the attempt; what replaces a process that died has a name of its own.
        """
        self.cell = dict(cell)
        self._directory = Path(cell["directory"])
        self.process = process_name(process, cell["attempt"])
        self._writer = LedgerWriter(self._directory / "streams", self.process, cell["run_id"]) if enabled else None
        if enabled:
            self._say_where(process)
        self._memory = MemorySampler() if enabled else None
        self._last_progress, self._done = 0.0, -1

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

    def process_died(self, process: str, why: str) -> None:
        """Declare a process of this attempt dead, by the name that its probe was given: its ledger has no closing note,
        and the attempt goes on without it."""
        self.fault(PROCESS_DIED, "system", process_name(process, self.cell["attempt"]), why)

    def queue(self, event: str, **row: Any) -> None:
        """Write an event of the queue between collectors and trainer; `row` are columns of the `queue` table. Depths
        are those after the event, and begin at 0 in each attempt: what a restore brings back is put again.

        Raises:
            HarnessBug: the event is none of `QUEUE_EVENTS`.
        """
        if event not in QUEUE_EVENTS:
            raise HarnessBug(f"queue event {event} is none of {QUEUE_EVENTS}")
        self._write("queue", [{"t": time.perf_counter_ns(), "event": event, **row}])

    def controls(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write completions that were sampled right after a publication, with the engine's and the trainer's log-probs
        of the same weights: the mismatch at zero lag."""
        self._write("controls", rows)

    def checkpoint(self, **row: Any) -> None:
        """Write a checkpoint that was written, or with `ok` False one that failed; `items` is JSON {item: digest}."""
        self._write("checkpoints", [row])

    def mark(self) -> dict[str, Any]:
        """How much of this process's history is written down now; a checkpoint keeps it, for `resumed`."""
        flushes = self._writer.flushes() if self._writer is not None else {}
        return {"process": self.process, "attempt": self.cell["attempt"], "flushes": flushes}

    def resumed(
        self,
        mark: Mapping[str, Any] | None,
        checkpoint: str | None,
        step: int,
        policy_version: int,
        restored: Mapping[str, Mapping[str, str]],
    ) -> None:
        """Say where this attempt goes on from, before it adds to the history: what earlier attempts wrote after `mark`
        is taken back. Once in each attempt but the first, by the process that writes the history.

        Args:
            mark: from the checkpoint that was restored; None where none was, and the run begins again.
            checkpoint: its path.
            step: optimizer steps taken; `policy_version`: of the weights.
            restored: of each item of step 12.5.1 its `state` (`restored`, `restarted` or `lost`), the digests `saved`
                and `found`, and the `evidence`.
        """
        content = {"mark": mark, "checkpoint": checkpoint, "step": step, "policy_version": policy_version}
        content |= {"restored": restored, "t": time.perf_counter_ns()}
        self.note(f"{RESUMED}{self.cell['attempt']}", content)
        self.flush()

    def memory_of(self, pid: int, component: str) -> None:
        """Sample the memory of another process of the cell, one that has no probe, under a name of its own."""
        if self._writer is not None and (size := pss_bytes(pid)) is not None:
            row = {"t": time.perf_counter_ns(), "pid": pid, "phase": None, "component": component}
            self._writer.write("memory", [row | {"source": "pss", "bytes": size}])

    def native(self, step: int | None, figures: Mapping[str, float]) -> None:
        """Write figures that the framework reports of itself."""
        now = time.perf_counter_ns()
        self._write("native", [{"t": now, "step": step, "key": key, "value": value} for key, value in figures.items()])

    def note(self, key: str, value: Any) -> None:
        """Write a fact about the run, as JSON."""
        self._write("manifest", [{"key": key, "value": json.dumps(value)}])

    def progress(self, done: int, total: int, text: str) -> None:
        """Tell the harness how far the run is, and in `text` what it is at ("starting Ray", "loading vLLM"): the last
        sign of life, which the row of a hang shows. Of steps in quick succession only a few a second reach the disk;
        what is said before the first one, or at one and the same, always does."""
        now = time.monotonic()
        if now - self._last_progress < PROGRESS_SECONDS and self._done < done < total:
            return
        self._last_progress, self._done = now, done
        partial = self._directory / f"progress.{os.getpid()}.partial"
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

    def _say_where(self, process: str) -> None:
        folder = self._directory / PROCESSES
        folder.mkdir(exist_ok=True)
        partial = self._directory / f"{process}.pid.partial"
        partial.write_text(str(os.getpid()), encoding="ascii")
        partial.replace(folder / process)

    def _write(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        if self._writer is not None and rows:
            self._writer.write(table, rows)


_COUNTS = ("records", "input_tokens", "output_tokens", "policy_tokens", "padded_tokens")
_DEFAULTS: dict[str, Any] = dict.fromkeys(_COUNTS, 0) | {"device": "cpu"}
