"""Headroom against a made-up roofline, and memory by phase, of the hand-made loop."""

from pathlib import Path
from typing import Any

import pytest

from harness.contract import STAGES
from harness.measure.figures.memory import PHASES
from harness.measure.values import Value
from harness.theory.memory import kv_bytes
from tests.ledgers import span
from tests.measure.loops import MODEL, TASK, at, figures, loop_cell

Figures = dict[str, Value]
MB = 1_000_000


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    return figures(loop_cell(tmp_path_factory.mktemp("loop")))


def test_prefill_is_limited_by_the_larger_of_bytes_and_operations(found: Figures) -> None:
    """3 forward passes of 4,000 bytes at 1 MB/s take 12 ms; 18 tokens of 2,000 operations at 4 M/s take 9 ms."""
    assert found["headroom_prefill"].value == pytest.approx(0.012 / 0.030)
    assert found["headroom_prefill"].numerator == pytest.approx(0.012)


def test_decode(found: Figures) -> None:
    """15 forward passes take 60 ms by bytes, 36 tokens 18 ms by operations."""
    assert found["headroom_decode"].value == pytest.approx(0.060 / 0.120)


def test_training_counts_three_passes_over_all_computed_positions(found: Figures) -> None:
    """3 steps x 2 micro-batches x 3 passes take 72 ms by bytes; 3 x 3 x 36 positions take 162 ms by operations."""
    assert found["headroom_train"].value == pytest.approx(0.162 / 0.060)


def test_checkpointing_the_activations_costs_another_forward(tmp_path: Path) -> None:
    found = figures(loop_cell(tmp_path), task=TASK | {"gradient_checkpointing": True})
    assert found["headroom_train"].value == pytest.approx(4 / 3 * 0.162 / 0.060)


def test_sync_is_limited_by_its_bytes(found: Figures) -> None:
    """The publications of steps 1..3 begin before their step; those of 2 and 3 are in the window: 8 ms at 1 MB/s."""
    assert found["headroom_sync"].value == pytest.approx(0.008 / 0.010)


@pytest.mark.parametrize("stage", ["prefill", "decode", "train", "sync"])
def test_without_a_roofline_there_is_no_headroom(tmp_path: Path, stage: str) -> None:
    value = figures(loop_cell(tmp_path), roofline=None)[f"headroom_{stage}"]
    assert value.value is None
    assert "limits of the machine" in str(value.reason)


def test_headroom_without_a_note_or_a_count_says_what_is_missing(tmp_path: Path) -> None:
    silent = [span("decode", at(2, 96), at(2, 97), trace_id="gen-2", output_tokens=0)]
    found = figures(loop_cell(tmp_path, spans=silent))
    assert found["headroom_decode"].value is None
    assert "forward passes" in str(found["headroom_decode"].reason)


def sample(ms: float, phase: str | None, size: int, **fields: Any) -> dict[str, Any]:
    return {"t": at(1, ms), "pid": 1, "phase": phase, "component": "process", "source": "pss", "bytes": size} | fields


def test_memory_peaks_by_phase(tmp_path: Path) -> None:
    rows = [
        sample(20, "decode", 5 * MB),
        sample(30, "decode", 7 * MB),
        sample(70, "forward_backward", 9 * MB),
        sample(92, None, 4 * MB),
        sample(97, None, 3 * MB),
        sample(70, "forward_backward", 99 * MB, component="device:0", source="cuda_allocated"),
    ]
    found = figures(loop_cell(tmp_path, memory=rows))
    assert found["memory_peak_bytes"].value == 9 * MB
    assert found["memory_peak_bytes[rollout]"].value == 7 * MB
    assert found["memory_peak_bytes[training]"].value == 9 * MB
    assert found["memory_peak_bytes[synchronisation]"].value == 4 * MB, "the stage that ran when the sample was taken"
    assert found["memory_peak_bytes[transition]"].value == 3 * MB, "between two stages"
    assert found["memory_peak_bytes[checkpoint]"].value is None
    assert found["device_memory_peak_bytes[cuda_allocated]"].value == 99 * MB


def test_memory_that_was_not_sampled_is_not_zero(found: Figures) -> None:
    assert found["memory_peak_bytes"].value is None
    assert found["device_memory_peak_bytes"].value is None
    assert found["memory_unexplained_bytes"].value is None


def test_predicted_memory_stands_beside_the_measured(tmp_path: Path) -> None:
    shape = {"layers": 2, "kv_heads": 2, "head_dim": 64}
    rows = [sample(70, "forward_backward", 9 * MB)]
    found = figures(loop_cell(tmp_path, notes={"model": MODEL | shape}, memory=rows))
    cache = kv_bytes(2, 2, 64, 4 * 3 + 16, 4)
    assert found["memory_predicted_bytes[model_state]"].value == 16_000
    assert found["memory_predicted_bytes[kv_cache]"].value == cache
    assert found["memory_unexplained_bytes"].value == 9 * MB - 16_000 - cache


def test_every_stage_belongs_to_a_phase_of_memory() -> None:
    phased = [stage for stages in PHASES.values() for stage in stages]
    assert sorted(phased) == sorted(STAGES)
