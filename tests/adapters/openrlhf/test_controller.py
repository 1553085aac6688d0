"""The controller's side without OpenRLHF: what it is told becomes a ledger that is whole and lawful."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adapters.openrlhf.busy import BusyStage
from adapters.openrlhf.checkpoints import actor_folder, restored_tag, write_held
from adapters.openrlhf.controller import PUT, Controller
from adapters.openrlhf.records import RECORDS, Completion, run_lengths, trace_of
from adapters.openrlhf.settings import prompt_file
from harness.audit.check import check_cell
from harness.contract import CellLedger, compact, read_cell
from harness.probe import Probe
from harness.probe.probe import CELL_VARIABLE
from tests.adapters.openrlhf.cells import cell_of
from tests.task.bundles import write_bundle

PROMPTS, GROUP, TOKENS = 2, 4, 3


@dataclass
class Sample:
    """An experience of one completion, as far as the controller looks at it."""

    labels: list[str]
    advantages: Any = field(default_factory=lambda: np.full((1, TOKENS), 0.5))
    trains: bool = True

    @property
    def action_mask(self) -> Any:
        return SimpleNamespace(bool=lambda: np.full((1, TOKENS), fill_value=self.trains))


class Loop:
    """OpenRLHF's loop, as far as the controller sees it; the version counts its optimizer steps."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, bundle: Path, steps: int = 2, **cell: Any
    ) -> None:
        self.cell = cell_of(folder, bundle, prompts_per_batch=PROMPTS, group_size=GROUP, steps=steps, **cell)
        folder.mkdir(exist_ok=True)
        (folder / "cell.json").write_text(json.dumps(self.cell), encoding="utf-8")
        prompt_file(self.cell).parent.mkdir(exist_ok=True)
        ids = [json.loads(line)["prompt_id"] for line in (bundle / "prompts.jsonl").read_text().splitlines()]
        rows = [{"label": str(row), "prompt_id": ids[row % len(ids)]} for row in range(steps * PROMPTS)]
        prompt_file(self.cell).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        monkeypatch.setenv(CELL_VARIABLE, str(folder / "cell.json"))
        monkeypatch.setattr("adapters.openrlhf.controller.this_cell", lambda: self.cell)
        monkeypatch.setattr("adapters.openrlhf.controller.settings_in_force", lambda *_: {"group_size": GROUP})
        self.engine = Probe(self.cell, "rollout-0")
        self.controller = Controller(time.perf_counter_ns())
        self.version = 0

    def begins(self, global_step: int = 0) -> None:
        self.version = global_step
        self.controller.begins(SimpleNamespace(), {"global_step": global_step})

    def generate(
        self, batch: int, served: tuple[int, ...], error: str | None = None, since: int | None = None
    ) -> list[Sample]:
        """Completions whose tokens were sampled after so many broadcasts; the first may have no verdict, and all may
        have been begun `since` then (perf_counter_ns)."""
        stage = BusyStage(self.engine, "generate")
        trace_id = trace_of(batch, self.cell["attempt"])
        samples = []
        for place in range(PROMPTS * GROUP):
            row, index = batch * PROMPTS + place // GROUP, place % GROUP
            stage.enter(trace_id, records=1, input_tokens=2)
            stage.count(output_tokens=TOKENS)
            now = time.perf_counter_ns()
            completion = Completion(row, index, 0, tokens=[5] * TOKENS, logprobs=[-0.5] * TOKENS)
            completion.served, completion.stop_reason, completion.text = run_lengths(served), "eos", "1"
            completion.times = dict.fromkeys(("t_queued", "t_generate_start", "t_first_token"), since or now)
            completion.times["t_generate_end"] = now
            completion.decoding = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "max_tokens": TOKENS}
            failed = error is not None and place < GROUP
            completion.reward = None if failed and index == 0 else 1.0
            completion.components = {} if completion.reward is None else {"correctness": 1.0}
            completion.error = error if completion.reward is None else None
            samples.append(Sample([completion.to_label()], trains=not failed))
            stage.leave()
        setattr(samples[0], PUT, time.perf_counter_ns())
        return samples

    def train(self, samples: list[Sample]) -> None:
        self.controller.takes(samples)
        self.controller.assembled()
        self.controller.assembles()
        self.controller.advantages(samples)
        self.controller.assembled()
        status = {"kl": 0.0, f"{RECORDS}_0": [self._step(samples)]}
        self.controller.trained(status)
        assert status == {"kl": 0.0}
        self.controller.broadcast(lambda: None)

    def _step(self, samples: list[Sample]) -> dict[str, Any]:
        start = time.perf_counter_ns()
        scores = np.full(TOKENS, -0.5, np.float32)
        common = {"policy_version": self.version, "trainer_logprobs": scores, "old_logprobs": scores}
        common |= {"advantage": 0.5, "policy_tokens": TOKENS}
        rows = [{**common, "sample_id": sample.labels[0]} for sample in samples if sample.trains]
        self.version += 1
        return {
            "policy_version_before": self.version - 1,
            "policy_version_after": self.version,
            "t_start": start,
            "t_end": time.perf_counter_ns(),
            "applied": True,
            "loss": 0.0,
            "grad_norm": 1.0,
            "learning_rate": 1e-3,
            "padded_tokens": 0,
            "clip_low": 0.2,
            "clip_high": 0.2,
            "weight_dtype": "torch.float32",
            "rows": rows,
        }

    def save(self, global_step: int) -> None:
        tag = f"global_step{global_step}"
        (actor_folder(self.cell) / tag).mkdir(parents=True)
        write_held(self.cell, tag, {"version": self.version, "items": {"parameters": "aa", "rng": f"r{global_step}"}})
        self.controller.saved(tag, time.perf_counter_ns())

    def ends(self) -> CellLedger:
        self.engine.close()
        folder = Path(self.cell["directory"])
        compact(folder / "streams", folder / "ledger", "cell")
        found = check_cell(folder / "ledger", "cell", self.cell["task"], None)
        assert found == [], found[:3]
        return read_cell(folder / "ledger", "cell")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write_bundle(tmp_path / "bundle")


def test_two_batches_are_a_lawful_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bundle: Path) -> None:
    loop = Loop(tmp_path / "cell", monkeypatch, bundle)
    loop.begins()
    for batch in range(2):
        loop.train(loop.generate(batch, (batch,) * TOKENS))
        loop.controller.step_ended()
    ledger = loop.ends()
    assert ledger.table("rollouts")["policy_version"].to_pylist() == [0] * 8 + [1] * 8
    assert ledger.table("publications")["published_version"].to_pylist() == [0, 1, 2]
    assert ledger.table("fates")["fate"].to_pylist() == ["trained"] * 16


def test_a_sequence_that_spans_a_publication_says_so_token_by_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bundle: Path
) -> None:
    loop = Loop(tmp_path / "cell", monkeypatch, bundle, layout="disaggregated_async", lag_bound=2)
    loop.begins()
    first = loop.generate(0, (0, 0, 0))
    before = time.perf_counter_ns()
    loop.controller.waits(before)
    loop.train(first)
    second = loop.generate(1, (0, 1, 1), since=before)
    loop.controller.waits(time.perf_counter_ns())
    loop.train(second)
    loop.controller.step_ended()
    ledger = loop.ends()
    assert ledger.table("rollouts")["token_policy_versions"].to_pylist() == [None] * 8 + [[0, 1, 1]] * 8
    assert ledger.table("queue")["event"].to_pylist() == ["put", "get", "put", "get"]


def test_a_group_without_a_verdict_is_dropped_and_trained_on_by_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bundle: Path
) -> None:
    loop = Loop(tmp_path / "cell", monkeypatch, bundle)
    loop.begins()
    loop.train(loop.generate(0, (0, 0, 0), error="too slow"))
    loop.train(loop.generate(1, (1, 1, 1)))
    loop.controller.step_ended()
    ledger = loop.ends()
    assert ledger.table("fates")["fate"].to_pylist() == ["dropped"] * 4 + ["trained"] * 12
    assert ledger.table("faults")["kind"].to_pylist() == ["verifier_error"]
    assert ledger.table("updates")["records"].to_pylist() == [4, 8]


def test_a_later_attempt_says_of_each_item_what_came_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bundle: Path
) -> None:
    loop = Loop(tmp_path / "cell", monkeypatch, bundle, steps=3)
    loop.begins()
    loop.train(loop.generate(0, (0, 0, 0)))
    loop.save(1)
    for probe in (loop.controller.probe, loop.engine):
        probe.flush()
    later = Loop(tmp_path / "cell", monkeypatch, bundle, steps=3, attempt=1)
    write_held(later.cell, restored_tag(later.cell), {"version": 1, "items": {"parameters": "aa", "rng": "anew"}})
    later.begins(global_step=1)
    later.controller.broadcast(lambda: None)
    # No engine has counted that broadcast: each begins to when it is first asked for a completion.
    later.train(later.generate(1, (0, 0, 0)))
    later.train(later.generate(2, (1, 1, 1)))
    later.controller.step_ended()
    ledger = later.ends()
    (note,) = [value for key, value in ledger.manifest.items() if key.startswith("resumed:")]
    states = {name: item["state"] for name, item in note["restored"].items()}
    assert {name for name, state in states.items() if state != "restored"} == {"rng"}
    assert ledger.table("updates")["step"].to_pylist() == [0, 1, 2]
    assert ledger.table("rollouts")["policy_version"].to_pylist() == [0] * 8 + [1] * 8 + [2] * 8
    assert ledger.table("publications")["published_version"].to_pylist() == [0, 1, 2, 3, 4]
