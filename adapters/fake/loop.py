"""The fake loop: it walks a made-up clock through the stages and writes what a real loop would."""

import hashlib
import json
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from adapters.fake.checkpoint import restore, save, waiting_batches
from adapters.fake.records import fate_row, rollout_row, trained_row
from adapters.fake.truth import Sample, Truth, every, make_batch
from harness.probe import Probe
from harness.probe.faults import Faults

MILLISECOND = 1_000_000
MODEL = {
    "parameters": 1_000_000,
    "trainable": 1_000_000,
    "layers": 2,
    "hidden": 64,
    "kv_heads": 1,
    "head_dim": 64,
    "vocab": 16,
    "bytes": 4_000_000,
    "flops_per_token": 2_000_000,
}


class FakeLoop:
    """One cell of the fake adapter. The clock starts at the real one, so that the rest of the harness can follow it."""

    def __init__(self, probe: Probe) -> None:
        self._probe, self._cell, self._task = probe, probe.cell, probe.cell["task"]
        self._truth = Truth.of(self._cell["adapter_options"])
        self._clock = time.perf_counter_ns()
        self._taken_ms = self._truth.taken_ms(self._cell)
        self._checkpoints = self._cell["adapter_options"]["checkpoint"]
        self._trainer, self._controller = Faults.of(self._cell, "trainer"), Faults.of(self._cell, "controller")
        fresh = {"step": 0, "batch": 0, "version": 0, "published": -1, "weights": 0, "waiting": [], "clock": 0}
        self._state = restore(probe, fresh)
        self._version, self._step, self._batch = (self._state[key] for key in ("version", "step", "batch"))
        self._published, self._weights = self._state["published"], self._state["weights"]
        self._clock = max(self._clock, self._state["clock"])

    def run(self) -> None:
        """Every batch, every update, and what is left in flight at the end.

        `ahead` batches are generated before the first is trained on, so that each later one is consumed that many
        batches after the weights that sampled it.
        """
        self._probe.progress(self._step, self._task["steps"], "starting")
        self._publish()
        start, waiting = self._clock, self._restored_queue()
        trained = 0
        while self._step < self._task["steps"]:
            while len(waiting) <= self._truth.ahead:
                waiting.append(self._generate())
            self._train_on(waiting.popleft())
            trained += 1
            if self._checkpoints["every"] and trained % self._checkpoints["every"] == 0:
                self._save(waiting)
        end = self._clock
        if self._truth.left_in_flight:
            waiting.append(self._generate())
        for samples in waiting:
            self._settle(samples, set())
        self._note(start, end)

    @property
    def digest(self) -> str:
        """Stands for the hash of the parameters: it follows from the number of updates that they have seen."""
        return hashlib.sha256(str(self._weights).encode()).hexdigest()

    def _restored_queue(self) -> deque[list[Sample]]:
        """What the checkpoint's queue held, or nothing where it is to be discarded, which is counted."""
        batches = waiting_batches(self._truth, self._cell, self._state)
        if self._checkpoints["queue"] == "keep":
            return deque(batches)
        for samples in batches:
            fates = [fate_row(sample, "dropped", self._clock) | {"reason": "queue_discarded"} for sample in samples]
            self._probe.fates(fates)
        return deque()

    def _save(self, waiting: Sequence[Sequence[Sample]]) -> None:
        queue = [[samples[0].batch, samples[0].version] for samples in waiting]
        names = {"step": self._step, "batch": self._batch, "version": self._version, "published": self._published}
        save(self._probe, names | {"weights": self._weights, "waiting": queue, "clock": self._clock})
        self._trainer.at("trainer.after_checkpoint")

    def _span(self, stage: str, trace_id: str, **fields: Any) -> tuple[int, int]:
        """Let a stage take its time on the made-up clock; the span's start and end. A stage of no time has no span."""
        start = self._clock
        self._clock += int(self._taken_ms[stage] * MILLISECOND)
        if self._clock > start:
            self._probe.add_span(stage, start, self._clock, trace_id=trace_id, **fields)
        return start, self._clock

    def _publish(self) -> None:
        self._published += 1
        at = {"policy_version": self._version, "records": 1}
        start, end = self._span("weight_sync", f"publication-{self._version}", **at)
        moved = self._truth.published_bytes
        versions = {"published_version": self._published, "policy_version": self._version}
        facts = {"kind": "full" if moved else "shared", "bytes": moved, "ok": True, "verified": True}
        self._probe.publication(replicas=1, acknowledged=1, t_start=start, t_end=end, **versions, **facts)

    def _generate(self) -> list[Sample]:
        """The group's prompt is prefilled once, and gives the first token of each completion; then they decode
        together, each until its length, so that a completion's own time goes with its length."""
        attempt = self._cell["attempt"]
        trace, version = f"gen-{self._batch}" + (f"~{attempt}" if attempt else ""), self._version
        samples = make_batch(self._truth, self._task, self._cell["track"], self._batch, version)
        longest, tokens = max(s.length for s in samples), sum(s.length for s in samples)
        at = {"policy_version": version, "records": len(samples)}
        prompts = self._task["prompts_per_batch"] * self._truth.prompt_tokens
        self._span("prompt_prep", trace, **at)
        first = {"input_tokens": prompts, "output_tokens": len(samples), "detail": '{"forwards": 1}'}
        start, first_end = self._span("prefill", trace, **first, **at)
        rest = {"output_tokens": tokens - len(samples), "detail": json.dumps({"forwards": longest - 1})}
        _, end = self._span("decode", trace, **rest, **at)
        verify = self._span("verifier", trace, **at)
        self._span("batch_assembly", trace, **at)
        stamps: dict[str, Any] = {"trace_id": trace, "published_version": self._published}
        stamps |= {"t_queued": start, "t_generate_start": start, "t_first_token": first_end}
        stamps |= {"t_verify_start": verify[0], "t_verify_end": verify[1]}
        rows = []
        for sample in samples:
            own = first_end + (end - first_end) * (sample.length - 1) // max(longest - 1, 1)
            rows.append(rollout_row(self._cell, self._truth, sample, stamps | {"t_generate_end": own}))
        self._probe.accept_rollouts(rows)
        for sample in samples:
            if sample.reward is None:
                text = "told to fail"
                self._probe.fault("verifier_error", "infrastructure", "verifier", text, sample_id=sample.sample_id)
        self._batch += 1
        return samples

    def _train_on(self, samples: Sequence[Sample]) -> None:
        """All updates of a batch, or as many as the run still has."""
        kept = [sample for sample in samples if sample.lost is None]
        trained: set[str] = set()
        for epoch in range(self._task["inner_epochs"]):
            for number, part in enumerate(_split(kept, self._task["minibatches"])):
                if self._step < self._task["steps"]:
                    self._update(part, f"batch-{samples[0].batch}-mb-{number}" + (f"-e{epoch}" if epoch else ""), epoch)
                    trained |= {sample.sample_id for sample in part}
        self._settle(samples, trained)

    def _update(self, part: Sequence[Sample], batch_id: str, epoch: int) -> None:
        tokens, longest = sum(s.length for s in part), max(s.length for s in part)
        at = {"policy_version": self._version, "step": self._step, "records": len(part)}
        counts = {"policy_tokens": tokens, "padded_tokens": longest * len(part) - tokens}
        inputs = len(part) * self._truth.prompt_tokens
        start, _ = self._span("forward_backward", batch_id, input_tokens=inputs, **counts, **at)
        _, end = self._span("optimizer_step", batch_id, **at)
        shared = {"batch_id": batch_id, "step": self._step, "epoch": epoch, "t_step_start": start}
        shared |= {"policy_version": self._version, "published_version": self._published}
        several = self._task["minibatches"] * self._task["inner_epochs"] > 1 or self._truth.ahead > 0
        self._probe.trained([trained_row(self._truth, sample, shared, several) for sample in part])
        self._probe.update(
            step=self._step,
            batch_id=batch_id,
            policy_version_before=self._version,
            policy_version_after=self._version + 1,
            t_start=start,
            t_end=end,
            applied=True,
            loss=float(self._weights),
            grad_norm=0.0 if every(self._step, self._truth.zero_gradient_every) else 1.0,
            learning_rate=self._task["learning_rate"],
            records=len(part),
            groups=len({sample.group_id for sample in part}),
            clip_low=self._task["clip_low"],
            clip_high=self._task["clip_high"],
            **counts,
        )
        self._version += 1
        self._weights += 1
        self._publish()
        self._clock += int(self._truth.gap_ms * MILLISECOND)
        self._step += 1
        self._probe.progress(self._step, self._task["steps"], f"step {self._step}")
        _misbehave(self._truth, self._step)
        self._controller.at("controller.step")

    def _settle(self, samples: Sequence[Sample], trained: set[str]) -> None:
        """One fate for each sample; what no step consumed is in flight at the end of the run."""
        fates = [
            "dropped" if s.lost is not None else "trained" if s.sample_id in trained else "in_flight" for s in samples
        ]
        self._probe.fates([fate_row(sample, fate, self._clock) for sample, fate in zip(samples, fates, strict=True)])

    def _note(self, start: int, end: int) -> None:
        updates = self._task["minibatches"] * self._task["inner_epochs"]
        absent = {
            "queue_wait": "batches wait in no queue",
            "logprob_recompute": "there is no model",
            "checkpoint": "its clock stands still while it saves",
            "restore": "its clock stands still while it restores",
        }
        if not self._truth.stage_ms["weight_sync"]:
            absent["weight_sync"] = "there are no weights to move"
        notes = {
            "settings": self._task | {"lag_bound": self._truth.ahead * updates},
            "versions": {"fake": "0.1.0"},
            "trainer_models": ["temperature"],
            "model": MODEL,
            "threads": {"torch": 1},
            "final_parameter_sha256": self.digest,
            "window": {"t_start": start, "t_end": end},
            "engine": "fake",
            "absent_stages": absent,
            "device_count": 1,
        }
        for key, value in notes.items():
            self._probe.note(key, value)


def _split(samples: Sequence[Sample], parts: int) -> list[Sequence[Sample]]:
    """Into `parts` runs of near equal size, none empty as long as there are samples enough."""
    size = -(-len(samples) // parts)
    return [samples[start : start + size] for start in range(0, len(samples), size)]


def _misbehave(truth: Truth, steps_done: int) -> None:
    """After the second step, go wrong as told."""
    if truth.mode == "slow":
        time.sleep(truth.slow_s)
    if steps_done != 2:
        return
    if truth.mode == "crash":
        raise RuntimeError("told to crash")
    if truth.mode == "oom":
        raise MemoryError("told to run out of memory")
    if truth.mode == "hang":
        time.sleep(3600)
