"""`rlaxes plan` of a run whose truth is known: what a formula leaves unexplained is the gap that no stage covers."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harness.cli import app
from tests.fakes import CELL_ID, TASK, fake_ledger

GAP = 0.007
STAGES = {"prompt_prep": 0.0, "prefill": 4.0, "decode": 20.0, "verifier": 2.0, "batch_assembly": 1.0}
STAGES |= {"forward_backward": 10.0, "optimizer_step": 2.0, "weight_sync": 0.0}


def _run(folder: Path) -> Path:
    """A run of one cell of the loop of known truth, with what its manifest says of it."""
    fake_ledger(folder, gap_ms=1e3 * GAP, stage_ms=STAGES)
    row = {"cell_id": CELL_ID, "adapter": "fake", "system": "fake", "layout": "colocated_sync", "track": "free"}
    row |= {"repeat": 0, "fault": "none", "twin": CELL_ID, "status": "ok", "cause": None, "reason": None}
    resolved = {
        "task": TASK,
        "adapter": {"name": "fake"},
        "layout": {"name": "colocated_sync", "placement": "colocated", "synchrony": "synchronous"},
        "profile": {"name": "cpu", "device": "cpu"},
        "model": {"name": "tiny", "layers": 2, "hidden": 128},
        "price": {"amount": None},
    }
    configs = {CELL_ID.rsplit(".r", 1)[0]: {"resolved": resolved}}
    manifest = {"run_id": folder.name, "configs": configs, "cells": [row]}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def _told(*words: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["plan", *words, "--json"])
    assert done.exit_code == 0, done.output
    return dict(json.loads(done.stdout))


def test_the_rest_of_the_period_is_the_gap(tmp_path: Path) -> None:
    told = _told("pipeline", f"run={_run(tmp_path)}")
    assert told["figures"]["G"] == pytest.approx(0.026)
    assert told["figures"]["T"] == pytest.approx(0.013)
    assert told["compared"]["period"] == pytest.approx(
        {"predicted": 0.039, "measured": 0.039 + GAP, "unexplained": GAP}, rel=1e-6
    )
    assert told["compared"]["run"]["unexplained"] == pytest.approx(TASK["steps"] * GAP, rel=1e-6)
    assert told["critical_path"]["decode"] == pytest.approx(20 / 39)


def test_a_shared_module_has_no_engine_of_its_own_and_another_model_is_told(tmp_path: Path) -> None:
    told = _told("memory", f"run={_run(tmp_path)}", "card=1e6")
    assert told["figures"]["engine_weights"] == told["figures"]["transfer_buffer"] == 0
    assert told["figures"]["B(transition)"] == 16 * 322_176
    assert any("1,000,000 parameters" in warning for warning in told["warnings"])
    assert "it does not fit" in told["warnings"][0]
    assert set(told["compared"]) == {"peak", "rollout", "transition", "training", "synchronisation"}
