"""The fake loop: it walks a made-up clock through the stages and writes what a real loop would."""

import time
from collections.abc import Sequence
from typing import Any

from adapters.fake.truth import Sample, Truth, make_batch
from harness.probe import Probe

BEHAVIOR_LOGPROB = -0.5
MILLISECOND = 1_000_000
FLOPS_PER_TOKEN = 2_000_000


class FakeLoop:
    """One cell of the fake adapter. The clock starts at the real one, so that the rest of the harness can follow it."""

    def __init__(self, probe: Probe) -> None:
        self._probe, self._cell, self._task = probe, probe.cell, probe.cell["task"]
        self._truth = Truth.of(self._cell["adapter_options"])
        self._clock = time.perf_counter_ns()
        self._version = 0

    def run(self) -> None:
        """Every batch, every update, and what is left in flight at the end."""
        self._publish()
        start, step, batch = self._clock, 0, 0
        while step < self._task["steps"]:
            samples = self._generate(batch)
            kept = [sample for sample in samples if not sample.dropped]
            for epoch in range(self._task["inner_epochs"]):
                for minibatch, part in enumerate(_split(kept, self._task["minibatches"])):
                    if step < self._task["steps"]:
                        self._train(part, batch, minibatch, epoch, step)
                        step += 1
            self._settle(samples, step)
            batch += 1
        self._leave_in_flight(batch)
        self._note(start)

    def _stage(self, name: str, trace_id: str, **fields: Any) -> tuple[int, int]:
        """Let a stage take its time on the made-up clock; the span's start and end."""
        start = self._clock
        self._clock += int(self._truth.stage_ms[name] * MILLISECOND)
        self._probe.add_span(name, start, self._clock, trace_id=trace_id, **fields)
        return start, self._clock

    def _publish(self) -> None:
        moment = {"t_start": self._clock, "t_end": self._clock, "kind": "shared", "bytes": 0, "ok": True}
        versions = {"published_version": self._version, "policy_version": self._version}
        self._probe.publication(replicas=1, acknowledged=1, verified=True, **versions, **moment)

    def _generate(self, batch: int) -> list[Sample]:
        trace, version = f"gen-{batch}", self._version
        samples = make_batch(self._truth, self._task, self._cell["track"], batch, version)
        tokens, first = sum(sample.length for sample in samples), len(samples)
        at = {"policy_version": version, "records": len(samples)}
        prompts = self._task["prompts_per_batch"] * self._truth.prompt_tokens
        self._stage("prompt_prep", trace, **at)
        start, first_end = self._stage(
            "prefill", trace, input_tokens=prompts, output_tokens=first, policy_tokens=first, detail='{"forwards": 1}', **at
        )
        forwards = max(sample.length for sample in samples) - 1
        detail = f'{{"forwards": {forwards}}}'
        rest = {"output_tokens": tokens - first, "policy_tokens": tokens - first, "detail": detail}
        _, end = self._stage("decode", trace, **rest, **at)
        verify_start, verify_end = self._stage("verifier", trace, **at)
        self._stage("batch_assembly", trace, **at)
        stamps = {
            "t_queued": start,
            "t_generate_start": start,
            "t_first_token": first_end,
            "t_generate_end": end,
            "t_verify_start": verify_start,
            "t_verify_end": verify_end,
        }
        self._probe.accept_rollouts([self._rollout(sample, samples, stamps) for sample in samples])
        return samples

    def _rollout(self, sample: Sample, batch: Sequence[Sample], stamps: dict[str, int]) -> dict[str, Any]:
        group = [other.reward for other in batch if other.group_id == sample.group_id]
        rewards = [reward for reward in group if reward is not None]
        decoding = {key: self._task[key] for key in ("temperature", "top_p", "top_k", "min_p", "max_tokens")}
        scored = sample.reward is not None
        return {
            "run_id": self._cell["run_id"],
            "prompt_id": sample.prompt_id,
            "group_id": sample.group_id,
            "sample_id": sample.sample_id,
            "trace_id": f"gen-{sample.batch}",
            "policy_version": sample.version,
            "published_version": sample.version,
            "prompt_tokens": [1] * self._truth.prompt_tokens,
            "response_tokens": [2] * sample.length,
            "policy_mask": [0] * self._truth.prompt_tokens + [1] * sample.length,
            "behavior_logprobs": [BEHAVIOR_LOGPROB] * sample.length,
            "behavior_logprob_kind": "sampled_distribution",
            "decoding": {**decoding, "stop": [], "seed": self._cell["seed"]},
            "reward": {"correctness": sample.reward} if scored else {},
            "reward_total": sample.reward,
            "advantage": None if sample.reward is None else sample.reward - sum(rewards) / len(rewards),
            "stop_reason": "length" if sample.length == self._task["max_tokens"] else "eos",
            "stop_reason_source": "reported",
            "verifier_version": "fake-1",
            "tokenizer_hash": "fake",
            "template_hash": "fake",
            "status": "ok" if scored else "infrastructure_error",
            "group_complete": len(rewards) == len(group),
            "text": f"completion {sample.number}",
            **stamps,
        }

    def _train(self, part: Sequence[Sample], batch: int, minibatch: int, epoch: int, step: int) -> None:
        batch_id = f"batch-{batch}-mb-{minibatch}" + (f"-e{epoch}" if epoch else "")
        tokens = sum(sample.length for sample in part)
        longest = max(sample.length for sample in part)
        padded = longest * len(part) - tokens
        at = {"policy_version": self._version, "step": step, "records": len(part)}
        inputs = len(part) * self._truth.prompt_tokens
        counts = {"policy_tokens": tokens, "padded_tokens": padded}
        start, _ = self._stage("forward_backward", batch_id, input_tokens=inputs, **counts, **at)
        _, end = self._stage("optimizer_step", batch_id, **at)
        self._probe.trained([self._trained(sample, batch_id, step, epoch, start) for sample in part])
        self._probe.update(
            step=step,
            batch_id=batch_id,
            policy_version_before=self._version,
            policy_version_after=self._version + 1,
            t_start=start,
            t_end=end,
            applied=True,
            loss=0.0,
            grad_norm=1.0,
            learning_rate=self._task["learning_rate"],
            records=len(part),
            groups=len({sample.group_id for sample in part}),
            clip_low=self._task["clip_low"],
            clip_high=self._task["clip_high"],
            **counts,
        )
        self._version += 1
        self._publish()
        self._clock += int(self._truth.gap_ms * MILLISECOND)
        self._probe.progress(step + 1, self._task["steps"], f"step {step + 1}")
        _misbehave(self._truth, step)

    def _trained(self, sample: Sample, batch_id: str, step: int, epoch: int, start: int) -> dict[str, Any]:
        lag = self._version - sample.version
        log_ratio = self._truth.log_ratio + lag * self._truth.log_ratio_per_lag
        several = self._task["minibatches"] * self._task["inner_epochs"] > 1
        return {
            "sample_id": sample.sample_id,
            "batch_id": batch_id,
            "step": step,
            "epoch": epoch,
            "policy_version": self._version,
            "published_version": self._version,
            "trainer_logprobs": [BEHAVIOR_LOGPROB + log_ratio] * sample.length,
            "old_logprobs": [BEHAVIOR_LOGPROB] * sample.length if several else None,
            "advantage": 1.0 if sample.reward else -1.0,
            "policy_tokens": sample.length,
            "t_step_start": start,
        }

    def _settle(self, samples: Sequence[Sample], steps: int) -> None:
        """One fate for each sample. Where the run ends within a batch, what no step consumed is in flight."""
        kept = [sample for sample in samples if not sample.dropped]
        parts = _split(kept, self._task["minibatches"])
        begun = steps % (len(parts) * self._task["inner_epochs"]) or len(parts) * self._task["inner_epochs"]
        trained = {sample.sample_id for part in parts[:begun] for sample in part}
        self._probe.fates([self._fate(sample, trained) for sample in samples])

    def _fate(self, sample: Sample, trained: set[str]) -> dict[str, Any]:
        reason = None
        fate = "trained" if sample.sample_id in trained else "in_flight"
        if sample.dropped:
            fate, reason = "dropped", "verifier_error" if sample.reward is None else "filtered"
        tokens = {"policy_tokens": sample.length, "t": self._clock}
        return {"sample_id": sample.sample_id, "fate": fate, "reason": reason, **tokens}

    def _leave_in_flight(self, batch: int) -> None:
        if self._truth.left_in_flight:
            samples = self._generate(batch)
            self._probe.fates([self._fate(sample, set()) for sample in samples])

    def _note(self, start: int) -> None:
        notes = {
            "settings": self._task,
            "versions": {"fake": "0.1.0"},
            "trainer_models": ["temperature"],
            "model": {"parameters": 1_000_000, "trainable": 1_000_000, "bytes": 4_000_000, "flops_per_token": FLOPS_PER_TOKEN},
            "threads": {"torch": 1},
            "final_parameter_sha256": "0" * 64,
            "window": {"t_start": start, "t_end": self._clock},
            "engine": "fake",
            "absent_stages": {"weight_sync": "there are no weights", "logprob_recompute": "there is no model"},
            "device_count": 1,
        }
        for key, value in notes.items():
            self._probe.note(key, value)


def _split(samples: Sequence[Sample], parts: int) -> list[Sequence[Sample]]:
    """Into `parts` runs of near equal size, none empty as long as there are samples enough."""
    size = -(-len(samples) // parts)
    return [samples[start : start + size] for start in range(0, len(samples), size)]


def _misbehave(truth: Truth, step: int) -> None:
    """After the second step, go wrong as told."""
    if truth.mode == "slow":
        time.sleep(truth.slow_s)
    if step != 1:
        return
    if truth.mode == "crash":
        raise RuntimeError("told to crash")
    if truth.mode == "oom":
        raise MemoryError("told to run out of memory")
    if truth.mode == "hang":
        time.sleep(3600)
