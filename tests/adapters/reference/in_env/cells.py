"""Cells on a random model, run in this process: what they are told, and what they leave."""

import json
import os
import shutil
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.reference.run import run_cell
from harness.contract import compact, read_cell
from harness.probe import Probe
from harness.task.makers.job import Job, Made, make_bundle
from harness.task.makers.tiny import TinySettings, build_model, build_tokenizer
from harness.task.verifier import Verdict, Verifier
from tests.adapters.reference.cells import TASK
from tests.adapters.reference.cells import cell as small_cell

CELL_ID = "reference.check.free.r0"


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


def cell(
    bundle: Path,
    folder: Path,
    layout: str = "colocated_sync",
    lag_bound: int = 0,
    track: str = "free",
    seed: int = 5,
    observer: bool = True,
    options: dict[str, Any] | None = None,
    **task: Any,
) -> dict[str, Any]:
    """What a cell's process is told; `options` are those of the adapter that differ from its configuration."""
    named = {"name": layout, "lag_bound": lag_bound}
    asked = {"verify_every": 2} | (options or {})
    common: dict[str, Any] = {"cell_id": CELL_ID, "track": track, "seed": seed, "observer": observer}
    return small_cell(folder, bundle, layout=named, adapter_options=asked, task=task, **common)


def run(content: dict[str, Any], breaks: str | None = None) -> tuple[dict[str, Any], Any]:
    """The result and, where it was observed, the ledger, which the calling test holds to the laws of `rlaxes check`:
    to all of them, or to break the one that `breaks` names."""
    result = attempt(content)
    return result, sealed(content, breaks) if content["observer"] else None


def attempt(content: dict[str, Any]) -> dict[str, Any]:
    """One attempt at the cell, whose ledger stays open to a next one."""
    probe = Probe(content, enabled=content["observer"])
    try:
        with ExitStack() as stack:
            result = run_cell(probe, time.perf_counter_ns(), stack)
    except BaseException:
        probe.flush()
        raise
    probe.close()
    return result


def sealed(content: dict[str, Any], breaks: str | None = None) -> Any:
    """The ledger of all attempts; see `run`."""
    folder = Path(content["directory"])
    compact(folder / "streams", folder / "ledger", content["cell_id"])
    if kept := os.environ.get("RLAXES_KEPT_LEDGERS"):
        target = Path(kept) / f"{folder.parent.name}-{folder.name}"
        shutil.copytree(folder / "ledger", target)
        asked = {"task": content["task"], "breaks": breaks}
        (target / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    return read_cell(folder / "ledger", content["cell_id"])


def rows(ledger: Any, table: str) -> list[dict[str, Any]]:
    return list(ledger.table(table).to_pylist())
