"""verl's file log; the lines are written here in the format of verl 0.9.1."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adapters.verl.native import LogShape, log_file, log_shape, native_figures
from tests.fakes import ROOT

SYNC = LogShape(1)


def trainer(label: int, /, **data: Any) -> dict[str, Any]:
    return {"step": label, "data": {"training/global_step": label, **data}}


def rollouter(version: int) -> dict[str, Any]:
    return {"step": version, "data": {"fully_async/rollouter/idle_ratio": 0.25}}


def write(cell_dir: Path, lines: list[dict[str, Any]], attempt: int = 0, tail: bytes = b"") -> None:
    path = cell_dir / log_file(attempt)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines) + tail)


def steps_of(figures: list[tuple[int | None, str, float]], key: str) -> list[int | None]:
    return [step for step, named, _ in figures if named == key]


def test_labels_count_from_one_and_steps_from_zero(tmp_path: Path) -> None:
    write(tmp_path, [trainer(1, **{"actor/loss": 0.5}), trainer(2, **{"actor/loss": 0.25})])
    assert [(s, v) for s, key, v in native_figures(tmp_path, SYNC) if key == "actor/loss"] == [(0, 0.5), (1, 0.25)]


def test_a_line_of_several_updates_stands_at_the_last_of_them(tmp_path: Path) -> None:
    write(tmp_path, [trainer(1), trainer(2)])
    assert steps_of(native_figures(tmp_path, LogShape(4)), "training/global_step") == [3, 7]


def test_what_is_no_number_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, [trainer(1, **{"critic/score/mean": None, "note": "text", "flag": True, "perf/throughput": 7})])
    keys = [key for _, key, _ in native_figures(tmp_path, SYNC)]
    assert keys == ["training/global_step", "perf/throughput"]


def test_a_line_cut_by_a_kill_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, [trainer(1)], tail=b'{"step": 2, "data": {"training/glo')
    assert steps_of(native_figures(tmp_path, SYNC), "training/global_step") == [0]


def test_a_run_that_died_early_said_nothing(tmp_path: Path) -> None:
    assert native_figures(tmp_path, SYNC) == []


def test_the_two_lines_of_a_version_keep_their_own_windows(tmp_path: Path) -> None:
    """With two updates a publication, version 1's trainer line holds update 1 alone, version 2's updates 2 and 3."""
    lines = [rollouter(1), trainer(1), rollouter(2), trainer(2)]
    figures = native_figures(write_and(tmp_path, lines), LogShape(2, late=1))
    assert steps_of(figures, "training/global_step") == [0, 2]
    assert steps_of(figures, "fully_async/rollouter/idle_ratio") == [1, 3]


def write_and(cell_dir: Path, lines: list[dict[str, Any]]) -> Path:
    write(cell_dir, lines)
    return cell_dir


def test_a_prefix_written_twice_is_written_once(tmp_path: Path) -> None:
    write(tmp_path, [trainer(1, **{"timing_s/timing_s/param_sync": 0.06, "timing_s/gen": 2.0})])
    keys = [key for _, key, _ in native_figures(tmp_path, SYNC)]
    assert keys == ["training/global_step", "timing_s/param_sync", "timing_s/gen"]


def test_a_validation_before_the_first_step_speaks_of_no_step(tmp_path: Path) -> None:
    write(tmp_path, [{"step": 0, "data": {"val-core/arithmetic/acc/mean@1": 0.5}}, trainer(1)])
    assert steps_of(native_figures(tmp_path, SYNC), "val-core/arithmetic/acc/mean@1") == []


def test_a_restart_replaces_what_it_did_again(tmp_path: Path) -> None:
    write(tmp_path, [trainer(step, **{"actor/loss": 1.0}) for step in (1, 2, 3)])
    write(tmp_path, [trainer(step, **{"actor/loss": 2.0}) for step in (2, 3, 4)], attempt=1)
    write(tmp_path, [], attempt=2)
    losses = [(s, v) for s, key, v in native_figures(tmp_path, SYNC) if key == "actor/loss"]
    assert losses == [(0, 1.0), (1, 2.0), (2, 2.0), (3, 2.0)]


def test_the_tenth_attempt_comes_after_the_ninth(tmp_path: Path) -> None:
    for attempt in (9, 10):
        write(tmp_path, [trainer(1, **{"actor/loss": float(attempt)})], attempt=attempt)
    assert [v for _, key, v in native_figures(tmp_path, SYNC) if key == "actor/loss"] == [10.0]


NUMBERS = st.one_of(st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False))
DATA = st.dictionaries(st.text(st.characters(codec="ascii", categories=["L"]), min_size=1), NUMBERS, max_size=5)


@given(data=st.lists(DATA, max_size=6), per_label=st.integers(1, 8), late=st.integers(0, 1))
def test_every_number_that_was_logged_comes_back_at_a_step_of_its_line(
    data: list[dict[str, float]], per_label: int, late: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("cell")
    write(folder, [trainer(label, **row) for label, row in enumerate(data, 1)])
    figures = native_figures(folder, LogShape(per_label, late))
    ends = [label * per_label - 1 - late for label in range(1, len(data) + 1)]
    expected = [(end, key, float(v)) for end, row in zip(ends, data, strict=True) if end >= 0 for key, v in row.items()]
    assert [figure for figure in figures if figure[1] != "training/global_step"] == expected
    assert [step for step, key, _ in figures if key == "training/global_step"] == [end for end in ends if end >= 0]


@given(first=st.integers(1, 12), resumed=st.integers(1, 12), last=st.integers(1, 12))
def test_no_step_is_told_twice_whatever_a_restart_went_back_to(
    first: int, resumed: int, last: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("cell")
    write(folder, [trainer(label, which=0) for label in range(1, first + 1)])
    write(folder, [trainer(label, which=1) for label in range(resumed, last + 1)], attempt=1)
    steps = steps_of(native_figures(folder, SYNC), "which")
    assert len(steps) == len(set(steps))
    assert set(range(resumed - 1, last)) <= set(steps)


TASK = {"minibatches": 2, "inner_epochs": 3, "prompts_per_batch": 16}
OPTIONS = {"parameter_sync_step": 2, "warmup_batches": None, "staleness_threshold": None}


@pytest.mark.parametrize(
    ("layout", "mode", "expected"),
    [
        ("colocated_sync", None, LogShape(6)),
        ("colocated_async", None, LogShape(6)),
        ("disaggregated_async", "separate_async", LogShape(6)),
        ("disaggregated_async", "one_step_off", LogShape(6)),
        ("disaggregated_async", "fully_async", LogShape(12, late=6)),
    ],
)
def test_what_a_line_speaks_of_in_each_mode(layout: str, mode: str | None, expected: LogShape) -> None:
    """`separate_async` trains each half of its batch in a minibatch of its own: 2, of 3 epochs each, a hand-over."""
    options = OPTIONS | {"mode": mode}
    cell = {"layout": {"name": layout, "lag_bound": 12}, "task": TASK, "adapter_options": options}
    assert log_shape(cell) == expected


RECORDED = Path(__file__).parent / "recorded"
"""Whole lines of runs of verl 0.9.1 on a CPU."""
OTHER_MODES = ("fully_async/", "timing_s/param_sync", "timing_s/sync_rollout_weights")
ONLY_WHERE_ASKED = (
    "rollout_corr/rollout_is_eff_sample_size",
    "timing_s/save_checkpoint",
    "training/off_policy/evicted_samples",
)


@pytest.mark.parametrize("mode", ["sync", "separate_async"])
def test_lines_that_verl_wrote_hold_every_figure_that_the_adapter_defines(mode: str, tmp_path: Path) -> None:
    target = tmp_path / log_file(0)
    target.parent.mkdir()
    target.write_bytes((RECORDED / f"{mode}.jsonl").read_bytes())
    figures = native_figures(tmp_path, SYNC)
    spec = yaml.safe_load((ROOT / "adapters/verl/adapter.yaml").read_text(encoding="utf-8"))
    wanted = {said["key"] for said in spec["native"] if not said["key"].startswith(OTHER_MODES)}
    for step in (0, 1):
        assert wanted - set(ONLY_WHERE_ASKED) <= {key for found, key, _ in figures if found == step}
