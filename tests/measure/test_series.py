"""Series for plots: the right numbers, JSON, and of bounded size."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.measure import series
from harness.measure.api import series_cell
from harness.measure.view import CellView
from tests.fakes import context, fake_ledger, view


@pytest.fixture(scope="module")
def default(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return series_cell(view(tmp_path_factory.mktemp("cell")))


def test_all_of_it_is_json(default: dict[str, Any]) -> None:
    json.dumps(default, allow_nan=False)


def test_timeline_is_one_batch_from_prompt_to_step(default: dict[str, Any]) -> None:
    line = default["timeline"]
    stages = ["prompt_prep", "prefill", "decode", "verifier", "batch_assembly", "forward_backward", "optimizer_step"]
    assert line["stage"] == stages
    durations = [end - start for start, end in zip(line["start"], line["end"], strict=True)]
    assert durations == pytest.approx([0.001, 0.004, 0.020, 0.002, 0.001, 0.010, 0.002])
    assert line["start"][0] == pytest.approx(7 * 0.041)


def test_stages_of_each_step_and_the_rest(default: dict[str, Any]) -> None:
    stages = default["stages"]
    assert stages["step"] == list(range(2, 10))
    assert stages["decode"] == pytest.approx([0.020] * 8)
    # the gap after a step comes before the end of the next; the first step of the window starts after it
    assert stages["unattributed"] == pytest.approx([0.0] + [0.001] * 7, abs=1e-9)


def test_reward_over_samples(default: dict[str, Any]) -> None:
    reward = default["reward"]
    assert reward["samples"] == [16 * (batch + 1) for batch in range(10)]
    assert reward["mean"] == pytest.approx([(3 * 0.5 + 1) / 4] * 10)
    assert default["length"]["mean"] == pytest.approx([5.0] * 10)
    assert default["lengths"] == {"label": ["1-8"], "low": [1], "high": [8], "records": [128]}


def test_reward_where_the_verifier_failed_everywhere(tmp_path: Path) -> None:
    found = series_cell(_all_failed(tmp_path))
    assert found["reward"]["mean"] == [None] * 2
    assert found["lag"] == {"reason": "the run has 0 optimizer steps, of which 2 are warm-up"}


def _all_failed(folder: Path) -> CellView:
    """Two batches were generated, no update was made."""
    from harness.contract import LedgerWriter, compact, read_cell
    from harness.measure.view import Tables
    from tests.ledgers import CELL_ID, rollout

    with LedgerWriter(folder / "streams", "main", "run/cell") as writer:
        for batch in range(2):
            failed = {"reward_total": None, "status": "infrastructure_error", "group_complete": False}
            rows = [rollout(n, **failed, trace_id=f"gen-{batch}", sample_id=f"b{batch}.{n}") for n in range(4)]
            writer.accept_batch(rows)
    compact(folder / "streams", folder / "ledger", CELL_ID)
    return CellView(Tables(read_cell(folder / "ledger", CELL_ID)), context())


def test_log_ratio_by_length(tmp_path: Path) -> None:
    found = series_cell(view(tmp_path, lengths=[2, 10], log_ratios=[0.5, -0.125]))["log_ratio"]
    assert found["label"] == ["1-8", "9-16"]
    assert (found["low"], found["high"], found["n"]) == ([1, 9], [8, 16], [64, 64])
    assert found["p50"] == pytest.approx([0.5, -0.125], rel=1e-6)
    assert found["mean_abs"] == pytest.approx([0.5, 0.125], rel=1e-6)


def test_updates(default: dict[str, Any]) -> None:
    updates = default["updates"]
    assert updates["step"] == list(range(2, 10))
    assert updates["loss"] == [float(step) for step in range(2, 10)]
    assert updates["ess_share"] == pytest.approx([1.0] * 8)
    assert updates["clip_fraction"] == [0.0] * 8
    assert updates["lag_mean"] == [0.0] * 8


def test_long_series_are_thinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "MOST_POINTS", 4)
    found = series_cell(view(tmp_path))
    assert found["reward"]["samples"] == [16, 64, 112, 160]
    assert len(found["stages"]["step"]) <= 4
    assert len(found["updates"]["step"]) <= 4
    assert len(found["memory"]["t"]) <= 4


def test_memory_has_the_phase_of_its_stage(tmp_path: Path) -> None:
    memory = series_cell(fake_ledger(tmp_path), context())["memory"]
    assert set(memory["phase"]) >= {"rollout", "training"}
    assert all(size > 0 for size in memory["bytes"])
