"""The controller's side, OpenRLHF's `PPOTrainer` or `TrainingActor`: the one process that writes a run's history."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adapters.openrlhf.cellfile import this_cell
from adapters.openrlhf.checkpoints import EVIDENCE, actor_folder, all_items, read_held, restored_tag
from adapters.openrlhf.held import settings_in_force
from adapters.openrlhf.queuelog import QueueLog
from adapters.openrlhf.readback import element_count, run_notes
from adapters.openrlhf.records import RECORDS, Completion, Names, names_of, trace_of
from adapters.openrlhf.rows import Row, Served, fate_row, publication_row, rollout_row, update_row
from adapters.openrlhf.settings import computes_in_float32, prompt_file, updates_per_batch
from harness.probe import Probe
from harness.probe.faults import Faults
from harness.probe.kept import Kept, digest_of, keep, newest, say_resumed
from harness.task.bundle import Bundle


class Controller:
    """What the controller's process knows of the batch at hand. Times are perf_counter_ns."""

    def __init__(self, started: int) -> None:
        self.cell = this_cell()
        self._task = self.cell["task"]
        self.probe = Probe(self.cell, "controller", enabled=bool(self.cell["observer"]))
        self.faults = Faults.of(self.cell, "controller")
        self._bundle = Bundle.load(self.cell["bundle"])
        self._prompts = {prompt.prompt_id: prompt for prompt in self._bundle.prompts}
        self._rows = [json.loads(line) for line in prompt_file(self.cell).read_text(encoding="utf-8").splitlines()]
        self._queue = QueueLog(self.probe)
        self._elements, self._tensors = element_count(self._bundle.model_dir)
        self._arguments: Any = None
        self._assembly: int | None = None
        self._kept: Kept | None = None
        self._unsaid = False
        self._waiting: list[Row] = []
        self._trainer_faults = Faults.of(self.cell, "trainer-0", victim="trainer-0*")
        self._served: list[Served] = []
        """What an engine serves, by how many broadcasts it has taken in in this attempt."""
        self._common = {
            "run_id": self.cell["run_id"],
            "verifier_version": self._bundle.verifier_version,
            "tokenizer_hash": self._bundle.tokenizer_hash,
            "template_hash": self._bundle.template_hash,
        }
        self.published = -1
        self.step = self.version = 0
        self._batch: list[tuple[Names, Completion]] = []
        self._got = 0
        self._window: dict[str, int] = {}
        self.probe.add_span("startup", started, time.perf_counter_ns(), trace_id="startup")

    # The run

    def begins(self, arguments: Any, states: Mapping[str, Any]) -> None:
        """The loop is about to begin: engines have loaded the starting checkpoint themselves, which is publication 0.

        Args:
            arguments: those that OpenRLHF's trainer holds.
            states: where OpenRLHF goes on from.
        """
        now = time.perf_counter_ns()
        self._arguments = arguments
        for key, value in run_notes(self.cell).items():
            self.probe.note(key, value)
        self._window = {"t_start": now}
        self._served = [Served(0, 0)]
        self._kept = newest(self.cell)
        if self._kept is None:
            if self.cell["attempt"]:
                say_resumed(self.probe, None, 0, 0, {}, EVIDENCE)
            self.published = 0
            self._publish(now, now, 0, "each engine loads the starting checkpoint from its folder")
        else:
            self._goes_on(self._kept, int(states["global_step"]))
        self.probe.flush()

    def _goes_on(self, kept: Kept, global_step: int) -> None:
        self.step = global_step * updates_per_batch(self._task)
        self.version = read_held(self.cell, restored_tag(self.cell))["version"]
        self.published = kept.state["published"]
        self._unsaid = True
        if self.step >= self._task["steps"]:
            self._say_resumed([])

    def _say_resumed(self, cursor: Sequence[str]) -> None:
        """Where this attempt goes on from, once it is known which prompts come first; then what waited for it."""
        self._unsaid = False
        held = all_items(self.cell, self._components, restored_tag(self.cell), self._place, cursor)
        if self._ahead:
            held.pop("queue")
        say_resumed(self.probe, self._kept, self.step, self.version, held, EVIDENCE)
        for row in self._waiting:
            self.probe.publication(**row)
        self._waiting = []

    def saved(self, tag: str, start: int) -> None:
        """OpenRLHF has written a checkpoint, from `start` on."""
        size, batch = self._task["prompts_per_batch"], self._batch[0][0].batch + 1
        cursor = [row["prompt_id"] for row in self._rows[batch * size : (batch + 1) * size]]
        items = all_items(self.cell, self._components, tag, self._place, cursor)
        items |= {"queue": digest_of("batches in the queue or under way")} if self._ahead else {}
        path = actor_folder(self.cell) / tag
        keep(self.probe, path, start, self.step, self.version, items, {"published": self.published})
        self._trainer_faults.at("trainer.after_checkpoint")

    @property
    def _place(self) -> list[int]:
        return [self.step, self.version]

    @property
    def _components(self) -> dict[str, str]:
        bundle = self._bundle
        versions = {"tokenizer": bundle.tokenizer_hash, "template": bundle.template_hash}
        return versions | {"verifier": bundle.verifier_version}

    @property
    def _ahead(self) -> bool:
        """Whether a generator is ahead of the trainer: what it has made is in no checkpoint."""
        return self.cell["layout"]["synchrony"] == "asynchronous" and self.step < self._task["steps"]

    def step_ended(self) -> None:
        """A batch is trained on, published and logged."""
        self._window["t_end"] = time.perf_counter_ns()
        self.probe.flush()
        self.faults.at("controller.step")
        total = self._task["steps"]
        if self.step >= total:
            self._queue.close()
            self.probe.note("window", self._window)
            self.probe.close()

    def waits(self, start: int) -> None:
        """A batch came out of the queue that was waited for since `start`; after the last one it is OpenRLHF's word
        that there are no more."""
        if self.step >= self._task["steps"]:
            return
        self._got = time.perf_counter_ns()
        self.probe.add_span("queue_wait", start, self._got, trace_id="queue", step=self.step)

    # A batch

    def assembles(self) -> None:
        """The controller works on the batch itself."""
        self._assembly = time.perf_counter_ns()

    def assembled(self) -> None:
        """It is about to wait for the trainer's ranks."""
        if self._assembly is not None:
            fields: dict[str, Any] = {"trace_id": self.trace_id, "records": len(self._batch), "step": self.step}
            self.probe.add_span("batch_assembly", self._assembly, time.perf_counter_ns(), **fields)
        self._assembly = None

    def observed(self, start: int) -> None:
        """The controller's own recording began then and ends now."""
        fields: dict[str, Any] = {"trace_id": self.trace_id, "step": self.step}
        self.probe.add_span("observation", start, time.perf_counter_ns(), **fields)

    @property
    def trace_id(self) -> str:
        """Of the batch at hand."""
        return trace_of(self._batch[0][0].batch, self.cell["attempt"])

    def takes(self, samples: Sequence[Any]) -> None:
        """A generated batch is handed over; its samples' labels are what the engines' actors said."""
        start = time.perf_counter_ns()
        if self._unsaid:
            self._say_resumed(self._prompts_of(samples))
        found = [Completion.from_label(sample.labels[0]) for sample in samples]
        size = self._task["prompts_per_batch"]
        self._batch = [(names_of(self._rows, completion, size), completion) for completion in found]
        for sample, (names, _) in zip(samples, self._batch, strict=True):
            sample.labels = [names.sample_id]
        put = getattr(samples[0], PUT, None)
        if put is not None and self._got:
            self._queue.taken(put, self._got, len(found), sum(len(completion.tokens) for completion in found))
        self.observed(start)
        self.assembles()

    def _prompts_of(self, samples: Sequence[Any]) -> list[str]:
        rows = sorted({Completion.from_label(sample.labels[0]).row for sample in samples})
        return [self._rows[row]["prompt_id"] for row in rows]

    def advantages(self, experiences: Sequence[Any]) -> None:
        """OpenRLHF has made advantages of the batch's rewards: it is whole, and goes into the ledger."""
        self.assembled()
        start = time.perf_counter_ns()
        given: dict[str, float] = {}
        for experience in experiences:
            mask = experience.action_mask.bool()
            for at, sample_id in enumerate(experience.labels):
                if mask[at].any():
                    given[sample_id] = float(experience.advantages[at][mask[at]][0])
        for names, completion in self._batch:
            if completion.error is not None:
                where = f"verifier-{completion.replica}"
                self.probe.fault("verifier_error", "infrastructure", where, completion.error, sample_id=names.sample_id)
        self.probe.accept_rollouts(self._rollouts(given))
        self.observed(start)
        self.assembles()

    def _rollouts(self, given: Mapping[str, float]) -> list[Row]:
        """The batch's rows, with the advantages `given` by sample."""
        failed = {names.group_id for names, completion in self._batch if completion.error is not None}
        fixed = self.cell["track"] == "fixed_length"
        common = {**self._common, "trace_id": self.trace_id}
        found = []
        for names, completion in self._batch:
            prompt = self._prompts[names.prompt_id].token_ids
            row = rollout_row(names, completion, prompt, self._served, common, fixed_length=fixed)
            row["decoding"] |= {"stop": [], "seed": self.cell["seed"]}
            whole = names.group_id not in failed
            found.append(row | {"advantage": given.get(names.sample_id), "group_complete": whole})
        return found

    # Training

    def trained(self, status: dict[str, Any]) -> None:
        """The batch is trained on; the ranks' records are taken out of what OpenRLHF is going to log."""
        ranks = [status.pop(key) for key in sorted(key for key in status if key.startswith(RECORDS))]
        start = time.perf_counter_ns()
        self._note_settings(ranks[0][0]["weight_dtype"])
        done: dict[str, Row] = {}
        for index, parts in enumerate(zip(*ranks, strict=True)):
            self._update(index, parts)
            done |= {row["sample_id"]: row for part in parts for row in part["rows"]}
        now = time.perf_counter_ns()
        self.probe.fates([fate_row(names, c, now, trained=names.sample_id in done) for names, c in self._batch])
        self.observed(start)

    def _note_settings(self, weight_dtype: str) -> None:
        """Once, after the first step."""
        if self._arguments is not None:
            held = settings_in_force(self._arguments, self._batch[0][1].decoding, weight_dtype)
            self.probe.note("settings", held | {"lag_bound": self.cell["layout"]["lag_bound"]})
        self._arguments = None

    def _update(self, index: int, parts: Sequence[Row]) -> None:
        """One optimizer step, from what each rank says of it; `index` counts those of the batch."""
        epoch, minibatch = divmod(index, self._task["minibatches"])
        batch = self._batch[0][0].batch
        batch_id = f"batch-{batch}-mb-{minibatch}" + (f"-e{epoch}" if epoch else "")
        first = parts[0]
        rows = [row for part in parts for row in part["rows"]]
        group_of = {names.sample_id: names.group_id for names, _ in self._batch}
        where = {"batch_id": batch_id, "step": self.step}
        common = {**where, "epoch": epoch, "published_version": self.published, "t_step_start": first["t_start"]}
        self.probe.trained([{**row, **common} for row in rows])
        groups = len({group_of[row["sample_id"]] for row in rows})
        self.probe.update(**where, **update_row(parts, groups))
        self.step += 1
        self.version = first["policy_version_after"]

    # Publications

    def broadcast(self, call: Callable[[], None]) -> None:
        """All weights go to all engines, tensor by tensor; each engine's answer to each is waited for."""
        start = time.perf_counter_ns()
        call()
        self.published += 1
        now = Served(self.published, self.version)
        # After a restart OpenRLHF broadcasts before it asks an engine for anything, and none has begun to count.
        self._served = [now] if self._unsaid else [*self._served, now]
        size = self._elements * (4 if computes_in_float32(self.cell) else 2)
        detail = f"{self._tensors} tensors, a call to each engine for each; nothing says which version they are of"
        self._publish(start, time.perf_counter_ns(), size, detail)

    def _publish(self, start: int, end: int, size: int, detail: str) -> None:
        row = publication_row(Served(self.published, self.version), start, end, size, self.engines, detail)
        if self._unsaid:
            self._waiting.append(row)
        else:
            self.probe.publication(**row)

    engines = 1


PUT = "rlaxes_t_put"
"""Attribute of a batch's first sample: when it was put into the queue."""
