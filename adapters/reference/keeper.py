"""Keeps the run: when a checkpoint is due and of what, and how the next attempt goes on from the newest one [12.5.1].

The controller's side; standard library only. What the trainer holds, its own process writes (`trainer_state`).
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.reference.checkpoint import Checkpoint, CheckpointStore
from adapters.reference.checkpoint_items import Place, given_items, moving_items
from adapters.reference.checkpoint_writer import QUEUE, STATE, CheckpointWriter, Draft, KeptTrainer, digests
from adapters.reference.learner import Learner
from adapters.reference.publisher import Publisher
from adapters.reference.sample_lines import from_lines, to_lines
from adapters.reference.samples import Sample, fate_row
from adapters.reference.scheduler import PromptScheduler
from adapters.reference.settings import Settings
from harness.errors import SystemFailure
from harness.probe import Probe
from harness.probe.faults import Faults
from harness.task.bundle import Bundle
from harness.theory.checkpoint import best_interval

DISCARDED = "queue_discarded"
EVIDENCE = {
    "parameters": "trainer.safetensors",
    "optimizer": "trainer.safetensors",
    "rng": "random-*.json",
    "queue": QUEUE,
}


@dataclass(frozen=True)
class Kept:
    """The parts that hold the run's state."""

    learner: Learner
    scheduler: PromptScheduler
    publisher: Publisher
    trainer: KeptTrainer


class Keeper:
    """Saves after batches and restores before the first one."""

    def __init__(self, settings: Settings, bundle: Bundle, kept: Kept, probe: Probe) -> None:
        """`probe` is that of the process that owns the history."""
        self._settings, self._bundle, self._kept, self._probe = settings, bundle, kept, probe
        self._asked, self._faults = settings.checkpoint, Faults(settings, "controller")
        self._store = CheckpointStore(settings.directory / "checkpoints", self._asked.keep, self._faults)
        self._writer = CheckpointWriter(self._store, kept.trainer, self._faults, probe, self._asked.background)
        self._given = given_items(settings, bundle)
        self._batches, self._cost_s, self._last = 0, 0.0, time.perf_counter()

    def after(self, place: Place, timeline: Probe) -> None:
        """A batch is trained on and its weights are published: save, if it is time. Until this returns, nothing may
        change what is kept, and no row of the history may be written.

        Args:
            timeline: the probe of the calling thread.
        """
        self._faults.at("controller.step")
        self._batches += 1
        if not self._due():
            return
        start, learner = time.perf_counter(), self._kept.learner
        where: dict[str, Any] = {"policy_version": learner.version, "step": learner.step}
        with timeline.span("checkpoint", trace_id=f"checkpoint-{learner.step}", device="cpu", **where) as span:
            span.records = sum(map(len, place.waiting))
            self._writer.write(self._draft(place))
        self._last = time.perf_counter()
        self._batches, self._cost_s = 0, self._last - start

    def close(self) -> None:
        """Wait until what was begun is written."""
        self._writer.wait()

    def restore(self) -> Place:
        """Put every part back to where the newest whole checkpoint left it, and say where to go on: at the beginning in
        a first attempt, and where there is no whole one. To be called once, before the attempt's first publication.

        Raises:
            SystemFailure: the checkpoint is of another experiment, or what is held after loading it is not what was
                saved.
        """
        if self._settings.attempt == 0:
            return Place(0, 0)
        start = time.perf_counter_ns()
        found, refused = self._store.newest()
        for why in refused:
            self._probe.fault("checkpoint_refused", "system", "checkpoints", why)
        if found is None:
            self._probe.resumed(None, None, 0, 0, {})
            return Place(0, 0)
        place = self._restore(found)
        where: dict[str, Any] = {"policy_version": self._kept.learner.version, "step": found.step}
        self._probe.add_span("restore", start, time.perf_counter_ns(), trace_id=f"restore-{found.step}", **where)
        return place

    def _due(self) -> bool:
        """Every so many batches, or every sqrt(2 C M) seconds, C being what the last one held the loop up for."""
        if self._asked.mtbf_s is None:
            return 0 < self._asked.every <= self._batches
        waited = time.perf_counter() - self._last
        return not self._writer.busy and waited >= best_interval(self._cost_s, self._asked.mtbf_s)

    def _draft(self, place: Place) -> Draft:
        learner, start = self._kept.learner, time.perf_counter_ns()
        facts = {"mark": self._probe.mark(), "engine_recipe": self._given["engine_recipe"]}
        return Draft(learner.step, learner.version, self._items(place), to_lines(place.waiting), facts, start)

    def _items(self, place: Place) -> dict[str, Any]:
        kept = self._kept
        return self._given | moving_items(place, kept.learner, kept.scheduler, kept.publisher)

    def _restore(self, found: Checkpoint) -> Place:
        saved, state = found.facts["items"], found.read_json(STATE)
        self._refuse_another_experiment(saved)
        moved, cursor = state["step_and_version"], state["dataset_cursor"]
        whole = self._asked.restore == "full"
        part = self._kept.trainer.load(str(found.path), self._asked.restore)
        self._kept.learner.load_state(moved["learner"])
        self._kept.publisher.load_state(moved["publisher"])
        self._kept.scheduler.load_state(state["prompt_scheduler"] if whole else {"origin": cursor["next_batch"]})
        waiting = from_lines((found.path / QUEUE).read_text(encoding="utf-8"), self._bundle.prompts)
        keeps = whole and self._asked.queue == "keep"
        place = Place(
            moved["trained"], cursor["next_batch"], cursor["pending"] if whole else (), waiting if keeps else ()
        )
        held = digests(self._items(place), to_lines(place.waiting)) | part.items
        self._refuse_another_state(saved, held, whole)
        name = f"checkpoints/{found.path.name}"
        learner = self._kept.learner
        self._probe.resumed(found.facts["mark"], name, learner.step, learner.version, _states(saved, held, name))
        self._discard(() if keeps else waiting)
        return place

    def _refuse_another_experiment(self, saved: Mapping[str, str]) -> None:
        ours = digests(self._given, "")
        if other := [name for name in self._given if saved[name] != ours[name]]:
            raise SystemFailure(f"the checkpoint is of another experiment: it differs in {', '.join(other)}")

    def _refuse_another_state(self, saved: Mapping[str, str], held: Mapping[str, str], whole: bool) -> None:
        must = [*saved] if whole else ["parameters", "step_and_version"]
        dropped = ["queue"] if self._asked.queue == "discard" else []
        if other := [name for name in must if held[name] != saved[name] and name not in dropped]:
            raise SystemFailure(f"what was restored is not what was saved: {', '.join(other)}")

    def _discard(self, waiting: Sequence[Sequence[Sample]]) -> None:
        self._probe.fates([fate_row(sample, "dropped", DISCARDED) for group in waiting for sample in group])


def _states(saved: Mapping[str, str], held: Mapping[str, str], path: str) -> dict[str, dict[str, str]]:
    return {
        name: {
            "state": "restored" if held[name] == saved[name] else "lost" if name == "queue" else "restarted",
            "saved": saved[name],
            "found": held[name],
            "evidence": f"digest after loading beside that of {path}/{EVIDENCE.get(name, STATE)}",
        }
        for name in saved
    }
