"""Writes a simulated cell into a lawful ledger, so that every measure and report works on it unchanged.

A completion's rows and its engine's spans are written when it leaves the queue, under the trace id of the batch that
consumes it: a generated batch and a trained one are then the same thing, as in a real loop.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.contract import PROCESS_DIED, RESUMED, ROLLOUTS_LOST, LedgerWriter, process_name
from harness.contract.writer import Row
from harness.simulate import rows
from harness.simulate.ratios import SAYS, Ratios
from harness.simulate.recorder import Step
from harness.simulate.records import Group, Request, Sample
from harness.simulate.rows import ns, span
from harness.simulate.settings import Settings

MAIN, TRAINER, CHECKPOINTER = "main", "trainer", "checkpointer"
ABSENT = dict.fromkeys(
    ("prompt_prep", "batch_assembly", "startup", "restore", "observation", "generate"),
    "the simulator has no such stage",
)
LEFT = "the run's last optimizer step came first"


class Ledger:
    """The ledger of one cell; a `Recorder`. `close` ends it."""

    def __init__(self, streams: Path, settings: Settings, run_id: str) -> None:
        self._streams, self._settings, self._run_id = streams, settings, run_id
        (seed,) = np.random.SeedSequence([settings.seed, 1]).spawn(1)
        self._ratios = Ratios(settings.synthetic, settings.staleness, np.random.default_rng(seed))
        self._writers: dict[str, LedgerWriter] = {}
        self._devices = rows.devices(settings)
        self._traces: dict[Request, str] = {}
        self._served: list[tuple[int, int]] = []
        self._old: dict[Sample, Any] = {}
        self._batch, self._first = -1, 0
        self._losses = 0
        self._attempt, self._attempt_start = 0, 0.0
        self._mark: Row | None = None
        self._taking: Row | None = None

    def queue(
        self, t: float, event: str, records: int, tokens: int, depth: tuple[int, int, int], reason: str | None
    ) -> None:
        """See `Recorder`."""
        deep = dict(zip(("depth_records", "depth_tokens", "depth_bytes"), depth, strict=True))
        moved = {"t": ns(t), "event": event, "records": records, "tokens": tokens, "reason": reason}
        self._write(MAIN, "queue", [moved | deep])

    def waited(self, start: float, end: float, records: int) -> None:
        """See `Recorder`."""
        if not self._settings.synchronous and end > start:
            self._span(TRAINER, span("queue_wait", "queue", start, end, records=records))

    def taken(self, batch: int, groups: Sequence[Group], version: int, t: float) -> None:
        """See `Recorder`."""
        self._batch, self._first, self._old = batch, version, {}
        self._generated([sample for group in groups for sample in group.samples], f"batch-{batch}")

    def scored(self, batch: int, version: int, start: float, end: float, samples: Sequence[Sample]) -> None:
        """See `Recorder`."""
        counts = rows.counts(samples) | {"policy_version": version}
        self._span(TRAINER, span("logprob_recompute", f"batch-{batch}", start, end, **counts))

    def stepped(self, step: Step) -> None:
        """See `Recorder`."""
        trace = f"batch-{step.batch}"
        at = {"policy_version": step.version, "step": step.number}
        done = span("forward_backward", trace, step.start, step.middle, **at, **rows.counts(step.samples))
        self._span(TRAINER, done)
        self._span(TRAINER, span("optimizer_step", trace, step.middle, step.end, **at, records=len(step.samples)))
        self._write(MAIN, "trained", [self._trained(step, sample) for sample in step.samples])
        self._write(MAIN, "updates", [rows.update(step)])

    def batch_done(self, batch: int, version: int, samples: Sequence[Sample], t: float) -> None:
        """See `Recorder`."""
        self._write(MAIN, "fates", [rows.fate(sample, "trained", None, t) for sample in samples])

    def published(self, number: int, version: int, prepared: tuple[float, float], served: tuple[float, float]) -> None:
        """See `Recorder`."""
        at = {"policy_version": version, "records": 1}
        if prepared[1] > prepared[0]:
            self._span(TRAINER, span("weight_sync", "publication", *prepared, **at))
        if served[1] > served[0]:
            self._span(MAIN, span("weight_sync", "publication", *served, **at))
        replicas = self._settings.rollout.replicas
        moved = self._settings.publication.bytes
        kind = {"kind": "full" if moved else "shared", "bytes": moved}
        row = {"published_version": number, "policy_version": version, "ok": True} | kind
        times = {"t_start": ns(prepared[0]), "t_end": ns(served[1])}
        self._write(MAIN, "publications", [row | times | {"replicas": replicas, "acknowledged": replicas}])
        self._served.append((ns(served[1]), number))

    def dropped(self, samples: Sequence[tuple[Sample, str]], t: float) -> None:
        """See `Recorder`."""
        self._generated([sample for sample, _ in samples], f"batch-{self._batch + 1}")
        self._write(MAIN, "fates", [rows.fate(sample, "dropped", reason, t) for sample, reason in samples])
        errors = [sample for sample, _ in samples if sample.failed]
        self._write(MAIN, "faults", [rows.verifier_error(sample) for sample in errors])

    def lost(self, requests: Sequence[Request], worker: str, t: float) -> None:
        """See `Recorder`."""
        for request in requests:
            self._losses += 1
            trace = f"lost-{self._losses}"
            self._engine(request, trace, t)
            self._fault(ROLLOUTS_LOST, trace, t, f"{len(request.samples)} completions died with {worker}")
            self._fault(PROCESS_DIED, process_name(rows.lane(request), self._attempt), t, "its replica died")

    def saved(self, batches: Sequence[Sequence[Sample]]) -> None:
        """See `Recorder`. What waits is written now, so that it stays in the history that the checkpoint holds."""
        for number, samples in enumerate(batches, start=1):
            self._generated(samples, f"batch-{self._batch + number}")
        flushes = self._writer(MAIN).flushes()
        self._taking = {"process": process_name(MAIN, self._attempt), "attempt": self._attempt, "flushes": flushes}

    def checkpointed(self, step: int, version: int, start: float, end: float) -> None:
        """See `Recorder`."""
        row = {"step": step, "policy_version": version, "t_start": ns(start), "t_end": ns(end), "bytes": 0}
        self._write(MAIN, "checkpoints", [row | {"path": "simulated", "items": "{}", "ok": True}])
        process = CHECKPOINTER if self._settings.checkpoint.background else TRAINER
        self._span(process, span("checkpoint", "checkpoint", start, end, step=step, policy_version=version))
        self._mark = self._taking

    def died(self, requests: Sequence[Request], samples: Sequence[Sample], t: float) -> None:
        """See `Recorder`. The streams of this attempt are left torn, as those of killed processes are."""
        for request in requests:
            self._losses += 1
            self._engine(request, f"lost-{self._losses}", t)
        self._generated(samples, f"batch-{self._batch + 1}~{self._attempt}")
        note = {"t_start": ns(self._attempt_start), "t_end": ns(t), "returncode": -9}
        self._note(f"attempt:{self._attempt}", note)
        for writer in self._writers.values():
            writer.flush()
        self._writers = {}
        self._attempt, self._attempt_start = self._attempt + 1, t

    def restarted(self, step: int, version: int, died: float, ready: float) -> None:
        """See `Recorder`."""
        where: dict[str, Any] = {"mark": self._mark, "checkpoint": "simulated" if self._mark else None}
        where |= {"step": step, "policy_version": version, "restored": {}, "t": ns(ready)}
        self._note(f"{RESUMED}{self._attempt}", where)
        self._writer(MAIN).flush()
        self._span(MAIN, span("restore", "restore", died, ready, step=step, policy_version=version))

    def left(self, samples: Sequence[Sample], t: float) -> None:
        """See `Recorder`."""
        self._generated(samples, f"batch-{self._batch + 1}")
        self._write(MAIN, "fates", [rows.fate(sample, "in_flight", LEFT, t) for sample in samples])

    def close(self, seconds: float) -> None:
        """End the ledger of a run that lasted so many simulated seconds."""
        settings = self._settings
        strict = settings.synchronous or (settings.batch.groups is not None and settings.order == "asked")
        bound = 0 if settings.synchronous else settings.lag_bound
        told = {"minibatches": settings.batch.minibatches, "inner_epochs": settings.batch.inner_epochs}
        absent = ABSENT | ({"queue_wait": "batches wait in no queue"} if settings.synchronous else {})
        if settings.trainer.mtbf_s is not None:
            del absent["restore"]
        absent |= {} if settings.checkpoint.every else {"checkpoint": "no checkpoint was asked for"}
        absent |= {} if settings.trainer.logprob_s_per_token else {"logprob_recompute": "log-probs are not recomputed"}
        notes = {
            "settings": told | {"lag_bound": bound if strict else None},
            "window": {"t_start": 0, "t_end": ns(seconds)},
            "trainer_models": ["temperature"],
            "absent_stages": absent,
            "device_count": len(set(self._devices.values())),
            "simulated": rows.plain(settings),
            "log_ratios": SAYS.format(**vars(settings.synthetic)),
            "finished": True,
        }
        if self._attempt:
            self._note(
                f"attempt:{self._attempt}", {"t_start": ns(self._attempt_start), "t_end": ns(seconds), "returncode": 0}
            )
        for key, value in notes.items():
            self._note(key, value)
        for writer in self._writers.values():
            writer.close()

    def _generated(self, samples: Sequence[Sample], trace: str) -> None:
        """Write completions, and the spans of the requests that they came from."""
        if not samples:
            return
        for request in dict.fromkeys(map(rows.request_of, samples)):
            if request not in self._traces:
                self._traces[request] = trace
                self._engine(request, trace, None)
                self._verifier(request, trace)
        if written := [self._rollout(sample) for sample in samples if not sample.written]:
            self._writer(MAIN).accept_batch(written)
        for sample in samples:
            sample.written = True

    def _rollout(self, sample: Sample) -> Row:
        start = ns(sample.t_start)
        number = max((n for t, n in self._served if t <= start), default=0)
        return rows.rollout(sample, self._settings, self._run_id, self._traces[rows.request_of(sample)], number)

    def _engine(self, request: Request, trace: str, died: float | None) -> None:
        for row in rows.engine_spans(request, trace, died):
            self._span(rows.lane(request), row)

    def _verifier(self, request: Request, trace: str) -> None:
        start, end = request.samples[0].t_verify, request.samples[-1].t_verified
        row = span("verifier", trace, start, end, records=len(request.samples))
        self._span(f"verifier-{request.verifier}", row)

    def _trained(self, step: Step, sample: Sample) -> Row:
        """With one update a batch the ratio is that to the behaviour policy alone; with several, the old log-probs are
        those at the batch's first step, and each later step is further from them."""
        if self._settings.batch.updates == 1:
            scored = np.minimum(rows.BEHAVIOR + self._ratios.tokens(sample, step.version), 0.0)
            return rows.trained(step, sample, scored, None)
        if sample not in self._old:
            self._old[sample] = np.minimum(rows.BEHAVIOR + self._ratios.tokens(sample, self._first), 0.0)
        old = self._old[sample]
        scored = np.minimum(old + self._ratios.since(sample, step.version - self._first), 0.0)
        return rows.trained(step, sample, scored, old)

    def _fault(self, kind: str, where: str, t: float, detail: str) -> None:
        row = {"t": ns(t), "kind": kind, "cause": "system", "where": where, "detail": detail}
        self._write(MAIN, "faults", [row])

    def _note(self, key: str, value: Any) -> None:
        self._write(MAIN, "manifest", [{"key": key, "value": json.dumps(value)}])

    def _span(self, process: str, row: Row) -> None:
        device = self._devices.get(process.split(".")[0].split("x")[0], process)
        self._write(process, "spans", [{**row, "device": device}])

    def _write(self, process: str, table: str, written: Sequence[Row]) -> None:
        if written:
            self._writer(process).write(table, written)

    def _writer(self, process: str) -> LedgerWriter:
        if process not in self._writers:
            name = process_name(process, self._attempt)
            self._writers[process] = LedgerWriter(self._streams, name, self._run_id, by_the_clock=False)
        return self._writers[process]
