import json
from pathlib import Path

from adapters.trl.native import STATE_FILE, native_figures

HISTORY = [
    {"step": 1, "epoch": 0.5, "loss": 0.25, "step_time": 1.5, "num_tokens": 609.0, "reward": None},
    {"step": 2, "epoch": 1.0, "loss": float("nan"), "step_time": 0.5},
    {"step": 2, "train_runtime": 3.0, "train_loss": 0.1},
]


def test_steps_are_counted_from_zero_and_the_summary_has_none(tmp_path: Path) -> None:
    path = tmp_path / STATE_FILE
    path.parent.mkdir()
    path.write_text(json.dumps({"log_history": HISTORY}), encoding="utf-8")
    figures = native_figures(tmp_path)
    assert (0, "step_time", 1.5) in figures
    assert (1, "step_time", 0.5) in figures
    assert (None, "train_runtime", 3.0) in figures
    assert [step for step, key, _ in figures if key == "num_tokens"] == [0]
    assert not [key for _, key, _ in figures if key in {"reward", "step"}]
    assert [step for step, key, _ in figures if key == "loss"] == [0]


def test_a_run_that_died_early_said_nothing(tmp_path: Path) -> None:
    assert native_figures(tmp_path) == []
