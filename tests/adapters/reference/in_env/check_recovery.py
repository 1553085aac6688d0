"""The module's three branches [12.5.3]: uninterrupted and fully restored are one experiment, event by event and bit for
bit; with the weights alone it is another. Colocated, in one process."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.reference.run import run_cell
from harness.contract import compact, read_cell
from harness.errors import SystemFailure
from harness.probe import Probe
from harness.task.makers.job import Job, Made, make_bundle
from harness.task.makers.tiny import TinySettings, build_model, build_tokenizer
from harness.task.verifier import Verdict, Verifier
from tests.adapters.reference.cells import cell

CELL = "reference.colocated_sync.free.r0"
TASK = {"steps": 8, "minibatches": 2, "problems": {"count": 12}}
TIMES = {"t", "t_queued", "t_generate_start", "t_first_token", "t_generate_end", "t_verify_start", "t_verify_end"}
APART = TIMES | {"process", "flush", "trace_id", "published_version", "t_step_start", "t_start", "t_end"}
"""Columns in which two runs of one experiment may differ: when, by which attempt, and under which publication."""
EVENTS = ("rollouts", "trained", "updates", "fates")


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")

    def make(job: Job, problems: list[Any]) -> Made:
        tokenizer = build_tokenizer()
        return Made(build_model(TinySettings(), tokenizer), tokenizer, {})

    make_bundle(Job({"name": "arithmetic", "problems": TASK["problems"]}, {"name": "tiny"}, folder), make)
    return folder


@pytest.fixture(autouse=True)
def varied_rewards(monkeypatch: pytest.MonkeyPatch) -> None:
    """A random model is never right: reward lengths instead, so that there is something to learn."""
    score = Verifier.score

    def varied(self: Verifier, items: list[tuple[str, str]]) -> list[Verdict]:
        verdicts = score(self, items)
        return [replace(v, reward_total=float(len(t) % 3)) for v, (_, t) in zip(verdicts, items, strict=True)]

    monkeypatch.setattr(Verifier, "score", varied)


def checkpointed(bundle: Path, folder: Path, **changes: Any) -> dict[str, Any]:
    keep = {"every": 1, "keep": 3} | changes.pop("checkpoint", {})
    task = TASK | changes.pop("task", {})
    return cell(folder, bundle, task=task, adapter_options={"checkpoint": keep, "verify_every": 2}, **changes)


def attempt(content: dict[str, Any]) -> dict[str, Any]:
    probe = Probe(content, enabled=content["observer"])
    try:
        with ExitStack() as stack:
            result = run_cell(probe, time.perf_counter_ns(), stack)
    except BaseException:
        probe.flush()
        raise
    probe.close()
    return result


def ledger(content: dict[str, Any]) -> Any:
    folder = Path(content["directory"])
    compact(folder / "streams", folder / "ledger", CELL)
    return read_cell(folder / "ledger", CELL)


def rows(found: Any, table: str) -> list[dict[str, Any]]:
    return list(found.table(table).to_pylist())


def events(found: Any) -> dict[str, list[dict[str, Any]]]:
    return {
        table: [{name: value for name, value in row.items() if name not in APART} for row in rows(found, table)]
        for table in EVENTS
    }


def dies(
    at: int, point: str = "trainer.after_checkpoint", role: str = "trainer", action: str = "raise"
) -> dict[str, Any]:
    return {"name": "check", "restarts": 1, "faults": [{"point": point, "role": role, "at": at, "action": action}]}


def resumed(bundle: Path, folder: Path, at: int = 2, **changes: Any) -> tuple[dict[str, Any], Any]:
    """A run that dies after its `at`-th checkpoint and goes on as attempt 1."""
    content = checkpointed(bundle, folder, fault=dies(at), **changes)
    with pytest.raises(SystemFailure, match=r"trainer\.after_checkpoint"):
        attempt(content)
    return attempt(content | {"attempt": 1}), ledger(content)


def notes(found: Any, key: str) -> list[Any]:
    return [json.loads(row["value"]) for row in rows(found, "manifest") if row["key"] == key]


@pytest.mark.parametrize("background", [False, True])
def test_a_full_restore_goes_on_bit_for_bit(bundle: Path, tmp_path: Path, background: bool) -> None:
    whole = attempt(plain := checkpointed(bundle, tmp_path / "whole"))
    again, found = resumed(bundle, tmp_path / "cut", checkpoint={"background": background})
    assert again["final_parameter_sha256"] == whole["final_parameter_sha256"]
    assert again["final_loss"] == whole["final_loss"]
    assert events(found) == events(ledger(plain))
    (note,) = notes(found, "resumed:1")
    assert {item["state"] for item in note["restored"].values()} == {"restored"}
    assert len(note["restored"]) == 14
    assert all(item["saved"] == item["found"] for item in note["restored"].values())
    assert (note["checkpoint"], note["step"], note["policy_version"]) == ("checkpoints/step-4", 4, 4)
