"""The loop itself: sample groups, score them, and take clipped policy-gradient steps on the bundle's model."""

import json
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from harness.probe import Probe
from harness.task.bundle import Bundle, Prompt
from harness.task.verifier import Verifier
from plain_loop.driver import ONLY
from plain_loop.records import Sample, facts_of, fate_row, rollout_row

ABSENT = {
    "prompt_prep": "the bundle's token ids are used as they are",
    "queue_wait": "nothing waits: one process generates and trains",
    "prefill": "told with decode, as generate",
    "decode": "told with prefill, as generate",
    "batch_assembly": "a batch is a list",
    "logprob_recompute": "the old log-probs are those that were sampled with",
    "weight_sync": "the generating module is the trained one",
    "checkpoint": "it keeps none",
    "restore": "it starts from the bundle's checkpoint",
}


class Loop:
    """One cell. `version` counts the optimizer steps in the weights, which are published by being applied."""

    def __init__(self, probe: Probe, bundle: Bundle, verifier: Verifier) -> None:
        self.probe, self.bundle, self.verifier = probe, bundle, verifier
        self.cell, self.task = probe.cell, probe.cell["task"]
        self.fixed = self.cell["track"] == "fixed_length"
        torch.manual_seed(self.cell["seed"])
        torch.set_num_threads(self.cell["profile"]["threads"])
        self.model = AutoModelForCausalLM.from_pretrained(bundle.model_dir, dtype=torch.float32)
        self.tokenizer = AutoTokenizer.from_pretrained(bundle.model_dir)
        task = self.task
        betas, eps, decay = (task["adam_beta1"], task["adam_beta2"]), task["adam_eps"], task["weight_decay"]
        self.optimizer = torch.optim.AdamW(self.model.parameters(), task["learning_rate"], betas, eps, decay)
        self.version = 0
        self.log = Path(self.cell["directory"], f"log.{self.cell['attempt']}.jsonl")

    def run(self) -> dict[str, int]:
        """Every batch, until the task's optimizer steps are taken; the window that figures are measured in."""
        self.publish()
        start, batch, facts = time.perf_counter_ns(), 0, facts_of(self.cell, self.bundle)
        while self.version < self.task["steps"]:
            samples, rate = self.generate(batch)
            self.verify(samples, f"gen-{batch}")
            self.probe.accept_rollouts([rollout_row(sample, facts, self.fixed) for sample in samples])
            kept = [sample for sample in samples if sample.advantage is not None]
            trained = self.train(kept, batch, {"tokens_per_second": rate})
            now = time.perf_counter_ns()
            self.probe.fates([fate_row(sample, sample.sample_id in trained, now) for sample in samples])
            batch += 1
        return {"t_start": start, "t_end": time.perf_counter_ns()}

    def generate(self, batch: int) -> tuple[list[Sample], float]:
        """A batch of groups, prompts in file order and round again; and its tokens a second."""
        wanted, prompts = self.task["prompts_per_batch"], self.bundle.prompts
        with self.probe.span("generate", trace_id=f"gen-{batch}", policy_version=self.version) as span:
            start = time.perf_counter()
            numbers = range(batch * wanted, (batch + 1) * wanted)
            samples = [sample for n in numbers for sample in self.sample(prompts[n % len(prompts)], batch)]
            span.records, span.output_tokens = len(samples), sum(len(sample.tokens) for sample in samples)
            return samples, span.output_tokens / (time.perf_counter() - start)

    @torch.no_grad()
    def sample(self, prompt: Prompt, batch: int) -> list[Sample]:
        """One group: G completions of one prompt, token by token, from the softmax at the task's temperature."""
        group, end, start = self.task["group_size"], self.tokenizer.eos_token_id, time.perf_counter_ns()
        given, cache = torch.tensor([prompt.token_ids] * group), None
        picked: list[torch.Tensor] = []
        known: list[torch.Tensor] = []
        for _ in range(self.task["max_tokens"]):
            out = self.model(input_ids=given, past_key_values=cache, use_cache=True)
            cache, logits = out.past_key_values, out.logits[:, -1] / self.task["temperature"]
            given = torch.multinomial(logits.softmax(-1), 1)
            picked.append(given[:, 0])
            known.append(logits.log_softmax(-1).gather(1, given)[:, 0])
        times = {"t_generate_start": start, "t_generate_end": time.perf_counter_ns()}
        return [
            self._cut(prompt, batch, place, tokens, logprobs, end, times)
            for place, (tokens, logprobs) in enumerate(
                zip(torch.stack(picked, 1).tolist(), torch.stack(known, 1).tolist(), strict=True)
            )
        ]

    def _cut(
        self, prompt: Prompt, batch: int, place: int, tokens: list[int], logprobs: list[float], end: int,
        times: dict[str, int],
    ) -> Sample:  # fmt: skip
        """A completion up to its end of sequence, or all of it on the track of fixed lengths."""
        stops = [at for at, token in enumerate(tokens) if token == end and not self.fixed]
        length = stops[0] + 1 if stops else len(tokens)
        ended = bool(stops)
        return Sample(prompt, batch, place, self.version, tokens[:length], logprobs[:length], ended, times)

    def verify(self, samples: Sequence[Sample], trace: str) -> None:
        """Rewards from the task's own verifier, and advantages within each group that has two of them."""
        with self.probe.span("verifier", trace_id=trace) as span:
            span.records = len(samples)
            for sample in samples:
                sample.text = self.tokenizer.decode(sample.tokens, skip_special_tokens=True)
            verdicts = self.verifier.score([(sample.prompt.prompt_id, sample.text) for sample in samples])
        for sample, verdict in zip(samples, verdicts, strict=True):
            sample.verdict = verdict
            if verdict.status != "ok":
                told = verdict.detail or "no verdict"
                self.probe.fault("verifier_error", "infrastructure", "verifier", told, sample_id=sample.sample_id)
        for _, found in groupby(samples, key=lambda sample: sample.group_id):
            self._compare(list(found))

    def _compare(self, group: Sequence[Sample]) -> None:
        rewards = [sample.reward for sample in group if sample.reward is not None]
        for sample in group:
            sample.group_complete = len(rewards) == len(group)
            if sample.reward is not None and len(rewards) > 1:
                spread = stdev(rewards) + self.task["advantage_eps"]
                sample.advantage = (sample.reward - fmean(rewards)) / spread

    def train(self, kept: Sequence[Sample], batch: int, figures: dict[str, float]) -> set[str]:
        """Every minibatch, `inner_epochs` times over, or as many as the run still has; the ids of what was used."""
        size = -(-len(kept) // self.task["minibatches"])
        used: set[str] = set()
        for epoch in range(self.task["inner_epochs"]):
            for number, at in enumerate(range(0, len(kept), max(size, 1))):
                if self.version < self.task["steps"]:
                    part = kept[at : at + size]
                    self.step(part, f"batch-{batch}-mb-{number}" + (f"-e{epoch}" if epoch else ""), epoch, figures)
                    used |= {sample.sample_id for sample in part}
                    figures = {}
        return used

    def step(self, part: Sequence[Sample], batch_id: str, epoch: int, figures: dict[str, float]) -> None:
        """One optimizer step on the clipped surrogate, a mean over the policy tokens of `part`."""
        task, step = self.task, self.version
        tokens = sum(len(sample.tokens) for sample in part)
        at: dict[str, Any] = {"trace_id": batch_id, "policy_version": self.version, "step": step}
        start = time.perf_counter_ns()
        self.optimizer.zero_grad()
        with self.probe.span("forward_backward", **at) as span:
            loss, seen = 0.0, []
            for sample in part:
                new = self.score(sample)
                ratio = (new - torch.tensor(sample.logprobs)).exp()
                clipped = ratio.clamp(1 - task["clip_low"], 1 + task["clip_high"])
                part_loss = -torch.minimum(ratio * sample.advantage, clipped * sample.advantage).sum() / tokens
                part_loss.backward()
                loss += float(part_loss)
                seen.append(new.detach().tolist())
            span.records, span.policy_tokens = len(part), tokens
            span.input_tokens = sum(len(sample.prompt.token_ids) for sample in part)
        with self.probe.span("optimizer_step", **at) as span:
            norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), task["max_grad_norm"]))
            self.optimizer.step()
        self.version += 1
        shared = {"batch_id": batch_id, "step": step, "epoch": epoch, "t_step_start": start}
        shared |= {"policy_version": step, "published_version": step}
        self.probe.trained([shared | _trained(sample, new) for sample, new in zip(part, seen, strict=True)])
        self.probe.update(
            step=step, batch_id=batch_id, policy_version_before=step, policy_version_after=self.version, t_start=start,
            t_end=time.perf_counter_ns(), applied=True, loss=loss, grad_norm=norm, records=len(part),
            learning_rate=self.optimizer.param_groups[0]["lr"], groups=len({sample.group_id for sample in part}),
            policy_tokens=tokens, padded_tokens=0, clip_low=task["clip_low"], clip_high=task["clip_high"],
        )  # fmt: skip
        self.publish()
        self.probe.progress(self.version, task["steps"], f"step {self.version}")
        if step % self.cell["adapter_options"]["log_every"] == 0:
            with self.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"step": step, "loss": loss, **figures}) + "\n")

    def score(self, sample: Sample) -> torch.Tensor:
        """[T] log-probs of a completion under the weights at hand, at the temperature that sampled it."""
        ids = torch.tensor([[*sample.prompt.token_ids, *sample.tokens]])
        logits = self.model(input_ids=ids).logits[0, len(sample.prompt.token_ids) - 1 : -1] / self.task["temperature"]
        return logits.log_softmax(-1).gather(1, ids[0, len(sample.prompt.token_ids) :, None])[:, 0]

    def publish(self) -> None:
        """The generating module is the trained one: nothing moves."""
        now = time.perf_counter_ns()
        versions_now = {"published_version": self.version, "policy_version": self.version, "t_start": now, "t_end": now}
        self.probe.publication(**versions_now, kind="shared", bytes=0, replicas=1, acknowledged=1, ok=True)

    def settings(self) -> dict[str, Any]:
        """Each task setting as it is in force: from the objects that hold it, where there is one."""
        held = self.optimizer.param_groups[0]
        names = {"learning_rate": "lr", "adam_eps": "eps", "weight_decay": "weight_decay"}
        found = {setting: held[name] for setting, name in names.items()}
        found |= {"adam_beta1": held["betas"][0], "adam_beta2": held["betas"][1], "std_ddof": 1}
        return self.task | ONLY | found | {"lag_bound": 0}


def _trained(sample: Sample, new: list[float]) -> dict[str, Any]:
    """The columns of a row of `trained` that are the sample's own."""
    row = {"sample_id": sample.sample_id, "advantage": sample.advantage, "policy_tokens": len(sample.tokens)}
    return row | {"trainer_logprobs": new, "old_logprobs": sample.logprobs}
