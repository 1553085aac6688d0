"""What the adapter knows while TRL trains: the batch at hand, the step at hand, and the records that come of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from adapters.trl.advantages import check_advantages
from adapters.trl.batch import GeneratedBatch, Row, trace_id
from adapters.trl.checkpoints import Checkpoints
from adapters.trl.engine import GenerateEngine, VllmEngine, parameter_bytes
from adapters.trl.hooks import GENERATE, check_returned, check_scored
from adapters.trl.readback import absent_stages, settings_in_force
from adapters.trl.reward import VerifierReward
from adapters.trl.stages import StageClock
from harness.probe import Probe
from harness.probe.faults import Faults
from harness.probe.hooks import HookDrift

ROW = "rlaxes_row"
"""Key of the row numbers that ride through TRL's shuffle and split (on the CPU: reading them waits for no device)."""


class Observer:
    """Reads TRL's objects, never changes them; `attach` is called once, with the trainer built."""

    def __init__(
        self, probe: Probe, reward: VerifierReward, facts: Mapping[str, Any], checkpoints: Checkpoints
    ) -> None:
        """`facts` are the rollout columns that are the same for the whole run (run_id, decoding, hashes)."""
        self._probe, self._reward, self._facts, self._checkpoints = probe, reward, facts, checkpoints
        self._faults = {role: Faults.of(probe.cell, role) for role in ("rollout-0", "trainer-0", "controller")}
        self.window: dict[str, int] = {}
        self._batch: GeneratedBatch | None = None
        self._batches = self._skipped = 0
        self._published = self._engine_version = 0
        self._step_rows: list[int] = []
        self._padded = 0
        self._advantages_checked = False
        self._update: Row = {}
        self._first_prompts: list[str] = []

    def attach(self, trainer: Any) -> None:
        """Wrap the engine, and publish the initial weights where the engine is the trained module itself."""
        self._trainer = trainer
        device = trainer.accelerator.device
        synchronize = torch.cuda.synchronize if device.type == "cuda" else None
        self.clock = StageClock(self._probe, str(device), synchronize)
        if trainer.use_vllm:
            self._published = -1
            self._engine: GenerateEngine | VllmEngine = VllmEngine(trainer.vllm_generation, self.clock, self._pushed)
        else:
            self._engine = GenerateEngine(trainer.model, self.clock)

    @property
    def version(self) -> int:
        """Optimizer steps applied to the policy: TRL's `global_step` counts skipped ones too."""
        return self.step - self._skipped

    @property
    def step(self) -> int:
        """The optimizer step at hand, or between two the next one, from 0."""
        return int(self._trainer.state.global_step)

    # Publications

    def training_begins(self) -> None:
        """Optimizer and scheduler exist: what is in force is read back. The initial weights are publication 0."""
        self._probe.note("settings", settings_in_force(self._trainer, self._probe.cell))
        self._probe.note("absent_stages", absent_stages(self._trainer, resumed=self._checkpoints.kept is not None))
        if not self._trainer.use_vllm:
            self._shared = self._engine_holds_trained_tensors()
        kept = self._checkpoints.kept
        if kept is not None:
            self._batches, self._skipped = kept.state["batches"], kept.state["skipped"]
            self._published = kept.state["published"] + (not self._trainer.use_vllm)
            return  # TRL has not loaded all of it yet
        if not self._checkpoints.said:
            self._checkpoints.loaded(self._trainer, self._counters, [])
        if not self._trainer.use_vllm:
            self._share()

    def resumes(self) -> None:
        """TRL has loaded all that it keeps: what became of each item is said before the history goes on, and samples
        that waited in the buffer are gone."""
        if self._checkpoints.said:
            return
        kept, now = self._checkpoints.kept, self.clock.enter(None)
        self._checkpoints.loaded(self._trainer, self._counters, self._first_prompts)
        lost = {"fate": "dropped", "reason": "the buffer is not kept", "t": now}
        left = kept.state["left"] if kept is not None else ()
        self._probe.fates([lost | {"sample_id": sample, "policy_tokens": tokens} for sample, tokens in left])
        if not self._trainer.use_vllm:
            self._share()

    def saved(self) -> None:
        """TRL has written a checkpoint."""
        batch, started = self._batch, self.clock.started
        self.clock.enter(None)
        with self.clock.aside():
            rows = sorted(batch.untrained) if batch is not None else []
            left = [(batch.sample_ids[row], len(batch.response_tokens[row])) for row in rows] if batch else []
            self._checkpoints.written(self._trainer, started, self._counters, left)
        self._faults["trainer-0"].at("trainer.after_checkpoint")

    @property
    def _counters(self) -> dict[str, int]:
        return {"batches": self._batches, "skipped": self._skipped, "published": self._published}

    def _share(self) -> None:
        """The generating module is the trained one: a step publishes by being applied."""
        now = self.clock.enter(None)
        detail = "the generating module holds the optimizer's own tensors, checked when training began"
        self._publish("shared", now, now, 0, verified=self._shared, detail=detail)

    def _engine_holds_trained_tensors(self) -> bool:
        trained = {id(p) for group in self._trainer.optimizer.param_groups for p in group["params"]}
        engine = self._trainer.accelerator.unwrap_model(self._trainer.model_wrapped)
        return trained <= {id(parameter) for parameter in engine.parameters()}

    def _pushed(self, start: int, end: int) -> None:
        """A full push into vLLM ended; TRL gets no acknowledgement that says what arrived."""
        self._published += 1
        self._publish("full", start, end, parameter_bytes(self._trainer.model), verified=None, detail=None)

    def _publish(
        self, kind: str, start: int, end: int, size: int, *, verified: bool | None, detail: str | None
    ) -> None:
        self._engine_version = self.version
        self._probe.publication(
            published_version=self._published,
            policy_version=self.version,
            t_start=start,
            t_end=end,
            kind=kind,
            bytes=size,
            replicas=1,
            acknowledged=1,
            tensor_hash=None,
            verified=verified,
            ok=True,
            detail=detail,
        )

    @property
    def checkpoint(self) -> str | None:
        """The folder that TRL is told to resume from, in a later attempt."""
        return self._checkpoints.path

    # Steps

    def step_begins(self) -> None:
        """The first work of an optimizer step: its rows come from the data loader."""
        labels = {"policy_version": self.version, "step": self.step, "trace_id": self._trace_id()}
        self.clock.labels.update(labels)
        start = self.clock.enter("prompt_prep")
        self.window.setdefault("t_start", start)
        self._update = {"step": self.step, "policy_version_before": self.version, "t_start": start}
        self._step_rows, self._padded = [], 0

    def _trace_id(self) -> str:
        """The batch that the next micro-step works on."""
        if self._will_generate() or self._batch is None:
            return trace_id(self._batches, self._probe.cell["attempt"])
        return self._batch.trace_id

    def _will_generate(self) -> bool:
        arguments = self._trainer.args
        return bool(self._trainer._step % (arguments.steps_per_generation * arguments.num_iterations) == 0)

    def rows_given(self, batches: Sequence[Sequence[Mapping[str, Any]]]) -> None:
        """The data loader gave the step's rows; the first ones say where it goes on from."""
        if not self._first_prompts and batches:
            self._first_prompts = list(dict.fromkeys(row["prompt_id"] for row in batches[0]))

    def inputs_wanted(self) -> None:
        """TRL prepares a micro-batch: it generates a whole batch first, or takes the next slice of the buffered one."""
        self.clock.enter("prompt_prep" if self._will_generate() else "batch_assembly")

    def step_ends(self) -> None:
        """The optimizer step is applied and counted: `version` is one higher."""
        end = self.clock.enter(None)
        self.window["t_end"] = end
        skipped = bool(self._trainer.accelerator.optimizer_step_was_skipped)
        self._skipped += skipped
        batch = self._batch
        if batch is None:
            raise HookDrift("hook drift: an optimizer step ended before any batch was generated")
        with self.clock.aside():
            rows = [row for row in self._step_rows if not batch.masked[row]]
            self._update |= {
                "batch_id": self._batch_id(self._trainer._step - 1),
                "policy_version_after": self.version,
                "t_end": end,
                "applied": not skipped,
                "records": len(rows),
                "groups": len({batch.group_ids[row] for row in rows}),
                "policy_tokens": sum(len(batch.response_tokens[row]) for row in rows),
                "padded_tokens": self._padded,
                "clip_low": self._trainer.epsilon_low,
                "clip_high": self._trainer.epsilon_high,
            }
            self._write_fates(batch, rows, end)
            if not self._trainer.use_vllm:
                self._published += 1
                self._share()
        self._taken()

    def _taken(self) -> None:
        """A generated batch is trained on, if its last step is over."""
        if self._will_generate():
            self._faults["controller"].at("controller.step", self._batches)

    def _write_fates(self, batch: GeneratedBatch, rows: Sequence[int], end: int) -> None:
        """A row is trained once the first step that takes it is over; rows that TRL masks never are."""
        first = sorted(batch.untrained.intersection(rows))
        masked = sorted(row for row in batch.untrained.intersection(self._step_rows) if batch.masked[row])
        batch.untrained.difference_update(self._step_rows)
        self._probe.fates(batch.fate_rows(first, "trained", None, end))
        self._probe.fates(batch.fate_rows(masked, "dropped", "truncated", end))

    def logged(self, logs: Mapping[str, Any]) -> None:
        """TRL logs a step after it ended: its loss, gradient norm and learning rate complete the row."""
        if "loss" in logs and self._update:
            names = {"loss": "loss", "grad_norm": "grad_norm", "learning_rate": "learning_rate"}
            self._probe.update(**self._update, **{column: logs.get(key) for column, key in names.items()})
            self._update = {}

    # Generation

    def generation_begins(self, inputs: Sequence[Mapping[str, Any]]) -> None:
        """TRL is about to generate a batch for `inputs`, one dictionary a completion."""
        self._drop_leftovers()
        prompt_ids = [row["prompt_id"] for row in inputs]
        attempt = self._probe.cell["attempt"]
        self._batch = GeneratedBatch(self._batches, self.version, self._published, prompt_ids, attempt)
        self._batches += 1
        self.clock.labels["trace_id"] = self._batch.trace_id
        self.clock.enter("prompt_prep")
        self.clock.count(records=len(inputs))
        self._faults["rollout-0"].at("rollout.generate", self._batches)

    def _drop_leftovers(self) -> None:
        """TRL replaces its buffer: what of the last batch was never trained on is gone."""
        if self._batch is not None and self._batch.untrained:
            now = self.clock.enter(None)
            rows = sorted(self._batch.untrained)
            self._probe.fates(self._batch.fate_rows(rows, "dropped", "buffer_replaced", now))

    def generated(self, values: tuple[Any, ...]) -> None:
        """`_generate` returned; its tokens are those that TRL trains on."""
        check_returned(GENERATE, values)
        batch = self._current()
        with self.clock.aside():
            batch.prompt_tokens, batch.response_tokens = values[0], values[1]
            batch.policy_version, batch.published_version = self._engine_version, self._published
            self._take_engine(batch, values[4])
            ends = set(self._trainer.eos_token_ids)
            batch.unended = [not tokens or tokens[-1] not in ends for tokens in batch.response_tokens]
            free, hide = self._probe.cell["track"] == "free", self._trainer.mask_truncated_completions
            batch.truncated = [free and unended for unended in batch.unended]
            batch.masked = [hide and unended for unended in batch.unended]
            batch.untrained = set(range(len(batch.sample_ids)))

    def _take_engine(self, batch: GeneratedBatch, reported: Sequence[Sequence[float]] | None) -> None:
        last = self._engine.last
        batch.logprob_kind = self._engine.logprob_kind
        if last.logprobs is not None:
            matrix = last.logprobs.numpy()
            batch.logprobs = [matrix[row, : len(tokens)] for row, tokens in enumerate(batch.response_tokens)]
        else:
            batch.logprobs = reported
        batch.times = {"t_generate_start": last.t_start, "t_generate_end": last.t_end}
        if last.t_first_token is not None:
            batch.times["t_first_token"] = last.t_first_token

    def scored(self, scored: dict[str, Any]) -> None:
        """`_generate_and_score_completions` returned: the batch is whole. Row numbers are added for TRL to carry."""
        check_scored(scored)
        batch = self._current()
        with self.clock.aside():
            batch.texts, batch.verdicts = self._reward.last_texts, self._reward.last_verdicts
            batch.advantages = scored["advantages"].tolist()
            self._check_advantages(batch)
            self._note_verifier_errors(batch)
            self._probe.accept_rollouts(batch.rollout_rows(self._facts))
            scored[ROW] = torch.arange(len(batch.sample_ids))

    def _check_advantages(self, batch: GeneratedBatch) -> None:
        """Once, on the first batch with a group whose rewards differ."""
        rewards = [verdict.reward_total for verdict in batch.verdicts]
        if not self._advantages_checked and len(set(rewards)) > 1:
            scaled = self._trainer.scale_rewards != "none"
            check_advantages(rewards, batch.advantages, self._trainer.num_generations, scaled=scaled)
            self._advantages_checked = True

    def _note_verifier_errors(self, batch: GeneratedBatch) -> None:
        for sample_id, verdict in zip(batch.sample_ids, batch.verdicts, strict=True):
            if verdict.status != "ok":
                detail = verdict.detail or "no verdict"
                self._probe.fault("verifier_error", "infrastructure", "verifier", detail, sample_id=sample_id)

    # Training

    def trains(self) -> None:
        """A micro-batch is about to be trained on."""
        self._faults["trainer-0"].at("trainer.update", self.step)

    def trained_on(self, inputs: Mapping[str, Any], logprobs: torch.Tensor) -> None:
        """A micro-batch went forward and backward; `logprobs` are its trainer log-probs, rows x padded length."""
        end = self.clock.boundary()
        batch = self._current()
        rows = inputs[ROW].tolist()
        self.clock.count(**self._count_forward(batch, rows, inputs))
        self.clock.enter(None, at=end)
        with self.clock.aside():
            old = inputs.get("old_per_token_logps")
            step = {
                "batch_id": self._batch_id(self._trainer._step - 1),
                "step": self.step,
                "epoch": self._position(self._trainer._step - 1)[1],
                "policy_version": self.version,
                "published_version": self._published,
                "t_step_start": self._update["t_start"],
            }
            self._probe.trained(
                batch.trained_rows(rows, step, _numbers(logprobs), None if old is None else _numbers(old))
            )
            self._step_rows += rows

    def _count_forward(self, batch: GeneratedBatch, rows: Sequence[int], inputs: Mapping[str, Any]) -> dict[str, int]:
        prompt = sum(len(batch.prompt_tokens[row]) for row in rows)
        policy = sum(len(batch.response_tokens[row]) for row in rows if not batch.masked[row])
        width = inputs["prompt_ids"].shape[1] + inputs["completion_ids"].shape[1]
        padded = len(rows) * width - prompt - policy
        self._padded += padded
        return {"records": len(rows), "input_tokens": prompt, "policy_tokens": policy, "padded_tokens": padded}

    def _position(self, micro_step: int) -> tuple[int, int]:
        """(minibatch, epoch) of a micro-step within its generated batch."""
        arguments = self._trainer.args
        within = micro_step % (arguments.steps_per_generation * arguments.num_iterations)
        epoch, slice_number = divmod(within, arguments.steps_per_generation)
        return slice_number // arguments.gradient_accumulation_steps, epoch

    def _batch_id(self, micro_step: int) -> str:
        minibatch, epoch = self._position(micro_step)
        name = f"batch-{self._current().number}-mb-{minibatch}"
        return f"{name}-e{epoch}" if epoch else name

    def _current(self) -> GeneratedBatch:
        if self._batch is None:
            raise HookDrift("hook drift: TRL trains before it generates")
        return self._batch

    def ends(self) -> None:
        """The run ended, in whatever way: what was generated and never trained on is in flight."""
        now = self.clock.enter(None)
        self.resumes()
        if self._batch is not None and self._batch.untrained:
            rows = sorted(self._batch.untrained)
            why = "the run's last optimizer step came first"
            self._probe.fates(self._batch.fate_rows(rows, "in_flight", why, now))
            self._batch.untrained = set()

    def probe_seconds(self) -> dict[str, float]:
        """What observing cost: records and boundaries outside all spans, the log-prob recorder inside decode's."""
        return {"outside_spans": self.clock.probe_ns / 1e9, "inside_decode": self._engine.nanoseconds / 1e9}


def _numbers(tensor: torch.Tensor) -> npt.NDArray[np.float32]:
    values: npt.NDArray[np.float32] = tensor.detach().float().cpu().numpy()
    return values
