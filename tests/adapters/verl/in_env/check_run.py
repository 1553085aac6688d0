"""What a run of verl leaves where nothing is learnt: engine and trainer score every token alike, whatever the lag."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adapters.verl.settings import environment
from harness.contract import CellLedger, compact, read_cell
from harness.task.makers import tiny
from harness.task.makers.job import Job, make_bundle
from tests.adapters.verl.cells import cpu_cell

TASK: dict[str, Any] = {
    "steps": 4,
    "prompts_per_batch": 2,
    "group_size": 4,
    "minibatches": 2,
    "inner_epochs": 2,
    "learning_rate": 0.0,
}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle") / "bundle"
    folder.mkdir()
    task = {"name": "arithmetic", "problems": cpu_cell()["task"]["problems"]}
    make_bundle(Job(task, {"name": "tiny", "accuracy": 0.2}, folder), tiny.make)
    return folder


def run(directory: Path, bundle: Path, **changed: Any) -> CellLedger:
    """Run a cell for real, in processes of its own."""
    cell = cpu_cell(directory, bundle, task=TASK, cell_id="verl", observer=True, fault={}, repeat=0, **changed)
    (directory / "cell.json").write_text(json.dumps(cell), encoding="utf-8")
    env = os.environ | environment(cell) | {"RLAXES_CELL": str(directory / "cell.json"), "OMP_NUM_THREADS": "1"}
    with (directory / "output.log").open("wb") as output:
        done = subprocess.run(
            [sys.executable, "-m", "adapters.verl.inside"],
            env=env,
            cwd=directory,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    assert done.returncode == 0, (directory / "output.log").read_text(encoding="utf-8")[-4000:]
    compact(directory / "streams", directory / "ledger", "verl")
    return read_cell(directory / "ledger", "verl")


def gaps(ledger: CellLedger) -> np.ndarray[Any, Any]:
    """Trainer minus behaviour log-prob of every token each time it was trained on."""
    rollouts = {row["sample_id"]: row["behavior_logprobs"] for row in ledger.table("rollouts").to_pylist()}
    rows = ledger.table("trained").to_pylist()
    return np.concatenate([np.subtract(row["trainer_logprobs"], rollouts[row["sample_id"]]) for row in rows])


def test_in_float32_engine_and_trainer_agree_and_no_token_weighs_more_than_another(
    tmp_path: Path, bundle: Path
) -> None:
    ledger = run(tmp_path, bundle)
    found = gaps(ledger)
    assert np.abs(found).max() < 1e-5
    weights = np.exp(found.astype(np.float64))
    assert weights.sum() ** 2 / (weights**2).sum() == pytest.approx(len(found), rel=1e-9)
    lags = {row["policy_version"] for row in ledger.table("trained").to_pylist()}
    assert lags == {0, 1, 2, 3}


def test_under_verls_default_autocast_they_do_not(tmp_path: Path, bundle: Path) -> None:
    options = {"autocast": True}
    assert np.abs(gaps(run(tmp_path, bundle, options=options))).max() > 1e-4
