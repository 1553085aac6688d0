"""When a checkpoint is due, what becomes of a queue, and what a half-written one is worth."""

import json
import math
import threading
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.reference import keeper as keeper_module
from adapters.reference.checkpoint import TrainerPart, write_file
from adapters.reference.checkpoint_items import Place
from adapters.reference.engine import Completion
from adapters.reference.keeper import Keeper, Kept
from adapters.reference.learner import Learner
from adapters.reference.publisher import Publisher
from adapters.reference.sample_lines import from_lines, to_lines
from adapters.reference.samples import Sample
from adapters.reference.scheduler import PromptScheduler
from adapters.reference.settings import Settings
from harness.contract import compact, read_cell
from harness.errors import SystemFailure
from harness.probe import Probe
from harness.probe.faults import Faults
from harness.task.bundle import Prompt
from harness.task.verifier import Verdict
from tests.adapters.reference.cells import cell

PROMPTS = [Prompt(f"p{n}", messages=[], answer="", meta={}, text="", token_ids=[n]) for n in range(6)]
BUNDLE: Any = SimpleNamespace(
    tokenizer_hash="t", template_hash="c", verifier_version="v", hash="b", prompts=PROMPTS, path=Path()
)


class FakeTrainer:
    """Holds its version and a number that stands for the moments."""

    needs_scoring = False

    def __init__(self, settings: Settings) -> None:
        self.version, self.moments, self.saves = 0, 0, 0
        self._faults = Faults(settings, "trainer-0")
        self.may_end = threading.Event()
        self.may_end.set()
        self._part: TrainerPart | None = None
        self.on_save: Any = lambda: None

    def save(self, folder: str, background: bool) -> None:
        self.saves += 1
        self.on_save()
        content = {"version": self.version, "moments": self.moments}
        file = write_file(Path(folder, "trainer.safetensors"), [json.dumps(content).encode()], self._faults)
        self._part = TrainerPart({"trainer.safetensors": file}, self._items(), self.version)

    def saved(self) -> TrainerPart | None:
        return self._part if self.may_end.is_set() else None

    def committed(self) -> None:
        self._faults.at("trainer.after_checkpoint")

    def load(self, folder: str, which: str) -> TrainerPart:
        content = json.loads(Path(folder, "trainer.safetensors").read_text(encoding="utf-8"))
        self.version = content["version"]
        self.moments = content["moments"] if which == "full" else 0
        return TrainerPart({}, self._items(), self.version)

    def _items(self) -> dict[str, str]:
        return {"parameters": str(self.version), "optimizer": str(self.moments), "rng": "r"}


class Run:
    """One attempt's parts, as far as a keeper sees them."""

    def __init__(self, folder: Path, attempt: int = 0, **checkpoint: Any) -> None:
        options = {"checkpoint": {"every": 1} | checkpoint}
        self.cell = cell(folder, attempt=attempt, adapter_options=options)
        self.settings = Settings.from_cell(self.cell)
        self.probe, nothing = Probe(self.cell), Any
        self.trainer: Any = FakeTrainer(self.settings)
        self.publisher = Publisher(nothing, nothing, [], self.settings, self.probe)  # type: ignore[arg-type]
        self.learner = Learner(self.settings, self.trainer, nothing, self.publisher, self.probe)  # type: ignore[arg-type]
        self.scheduler = PromptScheduler(PROMPTS, self.settings)
        kept = Kept(self.learner, self.scheduler, self.publisher, self.trainer)
        self.keeper = Keeper(self.settings, BUNDLE, kept, self.probe)

    def step(self, place: Place) -> None:
        self.trainer.version += 1
        self.trainer.moments += 10
        self.learner.step += 1
        self.publisher.published += 1
        self.publisher.policy_version = self.trainer.version
        self.keeper.after(place, self.probe)

    @property
    def on_disk(self) -> list[str]:
        return sorted(path.name for path in (self.settings.directory / "checkpoints").glob("*"))

    def sealed(self) -> Any:
        self.keeper.close()
        self.probe.close()
        folder = self.settings.directory
        compact(folder / "streams", folder / "ledger", "c")
        return read_cell(folder / "ledger", "c")


def sample(number: int, **completion: Any) -> Sample:
    """A scored sample of two turns, the observation between them masked out."""
    turns: dict[str, Any] = {"mask": [1, 0, 1], "versions": [3, 3, 4], "logprobs": [-0.5, None, -0.1]}
    times = {"t_queued": 1, "t_start": 2, "t_first": 3, "t_end": 4, "stop_reason": "eos", "stop_source": "reported"}
    return Sample(
        sample_id=f"p{number}.b1.g0",
        group_id=f"p{number}.b1",
        trace_id="gen-1",
        prompt=PROMPTS[number % 6],
        completion=Completion(**{"tokens": [5, 6, 7]} | turns | times | completion),
        policy_version=3,
        published_version=3,
        truncated=False,
        text="a\u2028b\n",
        verdict=Verdict(0.5, {"correctness": 0.5}, t_start=8, t_end=9),
        advantage=0.1 + number,
    )


finite = st.floats(-1e6, 0.0)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.lists(st.none() | finite, min_size=1), st.text())),
    st.booleans(),
)
def test_samples_survive_being_written_down(drawn: list[tuple[int, list[float | None], str]], judged: bool) -> None:
    samples = []
    for number, logprobs, text in drawn:
        made = sample(number, tokens=[1] * len(logprobs), logprobs=logprobs, mask=None, versions=None)
        made.text, made.old = text, logprobs
        made.verdict = made.verdict if judged else None
        samples.append(made)
    groups = [samples[:2], [], samples[2:]]
    assert from_lines(to_lines(groups), PROMPTS) == groups


def test_a_queue_is_kept_with_its_behaviour_versions(tmp_path: Path) -> None:
    waiting = [[sample(0), sample(1)], [], [sample(2)]]
    Run(tmp_path).step(Place(1, 4, [2, 3], waiting))
    again = Run(tmp_path, attempt=1)
    assert again.keeper.restore() == Place(1, 4, [2, 3], waiting)
    assert (again.learner.step, again.trainer.moments, again.publisher.published) == (1, 10, 0)


@pytest.mark.parametrize("how", [{"queue": "discard"}, {"restore": "weights"}])
def test_a_queue_that_is_not_kept_is_counted(tmp_path: Path, how: dict[str, str]) -> None:
    waiting = [[sample(number)] for number in range(3)]
    Run(tmp_path, **how).step(Place(1, 4, [2, 3], waiting))
    again = Run(tmp_path, attempt=1, **how)
    place = again.keeper.restore()
    assert (place.next_batch, list(place.waiting)) == (4, [])
    assert list(place.pending) == ([] if "restore" in how else [2, 3])
    found = again.sealed()
    fates = found.table("fates").to_pylist()
    assert [(row["sample_id"], row["fate"], row["reason"], row["policy_tokens"]) for row in fates] == [
        (one.sample_id, "dropped", "queue_discarded", 2) for (one,) in waiting
    ]
    notes = {row["key"]: row["value"] for row in found.table("manifest").to_pylist()}
    items = json.loads(notes["resumed:1"])["restored"]
    assert items["queue"]["state"] == "lost"
    assert items["optimizer"]["state"] == ("restarted" if "restore" in how else "restored")


def test_every_so_many_batches(tmp_path: Path) -> None:
    run = Run(tmp_path, every=3, keep=5)
    for batch in range(1, 8):
        run.step(Place(batch, batch))
    assert run.on_disk == ["step-3", "step-6"]


def test_as_often_as_failures_and_the_measured_cost_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0)
    fake = SimpleNamespace(perf_counter=lambda: clock.now, perf_counter_ns=lambda: int(clock.now * 1e9))
    monkeypatch.setattr(keeper_module, "time", fake)
    run = Run(tmp_path, every=0, mtbf_s=50.0, keep=9)

    def save() -> None:
        clock.now += 1.0

    run.trainer.on_save = save
    saves = []
    for batch in range(1, 60):
        clock.now += 1.0
        before = run.trainer.saves
        run.step(Place(batch, batch))
        if run.trainer.saves > before:
            saves.append(clock.now)
    # The first one measures C = 1 s; the others then come every sqrt(2 x 1 s x 50 s) = 10 s, and last 1 s.
    gaps = [after - before for before, after in pairwise(saves)]
    assert gaps == [math.sqrt(2 * 50.0) + 1.0] * len(gaps)
    assert len(gaps) >= 4


def test_nothing_is_kept_where_nothing_is_asked_for(tmp_path: Path) -> None:
    run = Run(tmp_path, every=0)
    run.step(Place(1, 1))
    assert run.on_disk == []


def test_in_the_background_it_is_whole_only_when_all_is_on_disk(tmp_path: Path) -> None:
    run = Run(tmp_path, background=True)
    run.trainer.may_end.clear()
    run.step(Place(1, 1))
    assert run.on_disk == ["step-1.partial"]
    threading.Timer(0.1, run.trainer.may_end.set).start()
    run.step(Place(2, 2))
    assert "step-1" in run.on_disk
    run.keeper.close()
    assert run.on_disk == ["step-1", "step-2"]


def test_a_failure_in_the_background_is_a_row_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path, background=True)
    run.step(Place(1, 1))
    run.keeper.close()
    monkeypatch.setattr(run.trainer, "saved", lambda: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    run.step(Place(2, 2))
    run.keeper.close()
    monkeypatch.undo()
    run.step(Place(3, 3))
    found = run.sealed()
    assert [row["ok"] for row in found.table("checkpoints").to_pylist()] == [True, False, True]
    assert run.on_disk == ["step-1", "step-3"]


def test_a_verifier_that_changed_is_another_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Run(tmp_path).step(Place(1, 1))
    monkeypatch.setattr(BUNDLE, "verifier_version", "v2")
    with pytest.raises(SystemFailure, match="differs in component_versions"):
        Run(tmp_path, attempt=1).keeper.restore()
