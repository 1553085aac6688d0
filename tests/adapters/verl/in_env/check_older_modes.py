"""verl's two older modes, run for real: how far behind each batch was, and what the ledger says of it.

The V1 modes are the ones that the layouts name; the conformance suite runs those.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from adapters.verl.settings import environment
from harness.contract import CellLedger, compact, read_cell
from harness.task.makers import tiny
from harness.task.makers.job import Job, make_bundle
from tests.adapters.verl.cells import cpu_cell

SECONDS = 600
TASK = {"steps": 4, "warmup_steps": 0, "prompts_per_batch": 2, "group_size": 2}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    task = {"name": "arithmetic", "problems": cpu_cell()["task"]["problems"] | {"count": 16}}
    make_bundle(Job(task, {"name": "tiny", "accuracy": 0.2}, folder), tiny.make)
    return folder


def run(directory: Path, bundle: Path, bound: int, mode: str) -> CellLedger:
    """A cell's ledger, once it has run; its output where it failed."""
    cell = cpu_cell(directory, bundle, task=TASK, options={"mode": mode}, observer=True)
    cell |= {"layout": {"name": "disaggregated_async", "placement": "disaggregated", "lag_bound": bound}}
    cell |= {"fault": {"name": "none"}, "repeat": 0, "adapter": "verl", "package": "adapters.verl"}
    directory.mkdir()
    path = directory / "cell.json"
    path.write_text(json.dumps(cell), encoding="utf-8")
    variables = os.environ | environment(cell) | {"RLAXES_CELL": str(path)}
    command = [sys.executable, "-m", "adapters.verl.inside"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    compact(directory / "streams", directory / "ledger", cell["cell_id"])
    return read_cell(directory / "ledger", cell["cell_id"])


def lags_of(ledger: CellLedger) -> dict[int, set[int]]:
    """By optimizer step, how many the weights that sampled each completion were behind."""
    sampled = {row["sample_id"]: row["policy_version"] for row in ledger.table("rollouts").to_pylist()}
    lags: dict[int, set[int]] = {}
    for row in ledger.table("trained").to_pylist():
        lags.setdefault(row["step"], set()).add(row["policy_version"] - sampled[row["sample_id"]])
    return lags


def fates_of(ledger: CellLedger) -> Counter[Any]:
    """How many samples ended in which way."""
    return Counter(row["fate"] for row in ledger.table("fates").to_pylist())


def test_one_step_off_is_one_step_behind_after_its_first_batch(tmp_path: Path, bundle: Path) -> None:
    ledger = run(tmp_path / "cell", bundle, 1, "one_step_off")
    assert lags_of(ledger) == {0: {0}, 1: {1}, 2: {1}, 3: {1}}
    assert fates_of(ledger) == {"trained": 16}
    published = [(row["published_version"], row["policy_version"]) for row in ledger.table("publications").to_pylist()]
    assert published == [(0, 0), (1, 0), (2, 1), (3, 2), (4, 3)]
    assert all(row["verified"] and row["bytes"] > 0 for row in ledger.table("publications").to_pylist())


def test_fully_async_without_staleness_is_not_behind(tmp_path: Path, bundle: Path) -> None:
    ledger = run(tmp_path / "cell", bundle, 0, "fully_async")
    assert lags_of(ledger) == {step: {0} for step in range(4)}
    assert fates_of(ledger) == {"trained": 16}
