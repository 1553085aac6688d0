"""Calibration on logs: what their keys say by definition, what is predicted from it, and what is refused by name."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import UserError
from harness.simulate.calibrate_predict import Prediction, Variant
from harness.simulate.logged import Logged, read_logged
from harness.simulate.logged_predict import (
    NO_HAND_OVER,
    NO_PREPARING,
    NO_SHARING,
    Asked,
    calibrate_logged,
    counted_tokens,
    not_held_by_log,
    parts_of_log,
    predict_logged,
    refused_beside,
)
from tests import DATA
from tests.ingest.foreign import ingested

Step: TypeAlias = tuple[int, int, int]
LOGS = DATA / "real_logs"
EXPECTED = {"generate": ["timing_s/gen"], "forward_backward": ["timing_s/update_actor"]}
APART, TOGETHER = Asked("disaggregated", None, None), Asked("colocated", None, None)


def folder_of(output: Path, log: Path, *more: str) -> Path:
    (told,) = ingested(output, log, *more)
    return Path(told["ledger"]).parent


def logged(output: Path, steps: Sequence[Mapping[str, float]], *more: str) -> Logged:
    """A log of verl's console, `timing_s/` before each key that has no slash."""
    lines = []
    for number, values in enumerate(steps, 1):
        pairs = (f"{key if '/' in key else f'timing_s/{key}'}:{value}" for key, value in values.items())
        lines.append(" - ".join([f"step:{number}", *pairs]))
    output.mkdir(exist_ok=True, parents=True)
    (output / "verl.log").write_text("\n".join(lines) + "\n")
    return read_logged(folder_of(output / "runs", output / "verl.log", *more), EXPECTED)


def predicted(found: Logged, asked: Asked, layout: str, bound: int = 0, resamples: int = 0) -> Prediction:
    variant = Variant(layout, bound, 1, 1)
    return predict_logged(calibrate_logged(found, asked), asked, variant, batches=20, resamples=resamples, seed=1)


ALIKE = [{"gen": 4.0, "reward": 0.5, "update_actor": 1.0, "update_weights": 0.25, "step": 6.0}] * 6


def test_stages_are_those_of_the_key_map_and_the_rest_is_in_none(tmp_path: Path) -> None:
    found = logged(tmp_path, ALIKE)
    means = {name: float(values.mean()) for name, values in parts_of_log(found).items()}
    wanted = {"generate": 4.0, "verifier": 0.5, "forward_backward": 1.0, "weight_sync": 0.25, "in no stage": 0.25}
    assert means == pytest.approx(wanted)
    assert (found.keys["generate"], found.beside, found.mode) == (["timing_s/gen"], None, False)
    assert found.caveats["timing_s/gen"].startswith("with waking the engine")


def test_a_barrier_takes_a_step_and_overlap_the_longer_side(tmp_path: Path) -> None:
    found = logged(tmp_path, ALIKE)
    assert predicted(found, APART, "disaggregated_sync").figures["period_s"] == pytest.approx(6.0)
    slow = predicted(found, APART, "disaggregated_async", 2).figures
    assert slow["period_s"] == pytest.approx(4.0)
    assert slow["trainer_idle"] == pytest.approx(1 - 1.5 / 4)
    quick = logged(tmp_path / "b", [{"gen": 1.0, "update_actor": 3.0, "step": 5.0}] * 6)
    assert predicted(quick, APART, "disaggregated_async", 2).figures["period_s"] == pytest.approx(4.0)


def test_a_layout_that_adds_what_was_not_logged_is_refused_by_name(tmp_path: Path) -> None:
    found = logged(tmp_path, ALIKE)
    assert predicted(found, TOGETHER, "colocated_overlap").refused == NO_PREPARING
    assert predicted(found, TOGETHER, "disaggregated_async", 1).refused == NO_HAND_OVER
    assert predicted(found, APART, "colocated_sync").refused == NO_SHARING
    told = predicted(found, Asked("colocated", None, 2.0), "disaggregated_sync")
    assert told.figures["period_s"] == pytest.approx(8.0)
    assert predicted(found, Asked("colocated", None, 2.0), "colocated_sync").figures["period_s"] == pytest.approx(6.0)


def test_tokens_a_second_need_the_completions_of_a_step(tmp_path: Path) -> None:
    found = logged(tmp_path, [step | {"response_length/mean": 30.0} for step in ALIKE])
    assert counted_tokens(found, APART) is None
    assert "tokens_per_s" not in predicted(found, APART, "disaggregated_sync").figures
    assert any("give batch.groups= and group_size=" in line for line in not_held_by_log(found, APART))
    shaped = Asked("disaggregated", 8, None)
    assert predicted(found, shaped, "disaggregated_sync").figures["tokens_per_s"] == pytest.approx(8 * 30 / 6.0)


def test_warm_up_and_steps_with_a_validation_inside_are_left_out(tmp_path: Path) -> None:
    assert len(logged(tmp_path, ALIKE, "--warmup-steps", "2").period) == 4
    log = LOGS / "nemo_rl" / "nemo_rl_grpo_gemma1b_8xB200_50steps_blocks_2026-02.log"
    found = read_logged(folder_of(tmp_path / "nemo", log), EXPECTED)
    assert (len(found.period), found.left_out, found.mode) == (45, 5, True)
    assert found.period.max() < 50, "a step with a validation takes 80 s and more"


@pytest.mark.parametrize(
    "log",
    [
        "verl/verl_grpo_npfloat_2025-12.log",
        "verl/verl_logicrl_wandb_output_2025-03.log",
        "nemo_rl/nemo_rl_grpo_gemma1b_8xB200_50steps_blocks_2026-02.log",
    ],
)
def test_a_real_log_predicts_its_own_step(tmp_path: Path, log: str) -> None:
    found = read_logged(folder_of(tmp_path, LOGS / log), EXPECTED)
    told = predicted(found, TOGETHER, "colocated_sync", resamples=10)
    low, high = told.intervals["period_s"]
    middle = float(np.median(found.period))
    assert low <= middle <= high
    assert told.figures["period_s"] == pytest.approx(middle, abs=float(found.period.std()) / 3)


def test_an_asynchronous_log_tells_busy_seconds_and_predicts_nothing(tmp_path: Path) -> None:
    log = LOGS / "openrlhf" / "openrlhf_0.11.2_async_8_rounds.log"
    found = read_logged(folder_of(tmp_path, log), EXPECTED)
    assert found.beside == "its mode is async"
    assert parts_of_log(found).keys() == {"logprob_recompute", "forward_backward", "weight_sync"}
    assert "seconds of generation by itself are missing" in refused_beside(found)
    beside = logged(tmp_path / "beside", [{"gen": 4.0, "update_actor": 3.0, "step": 5.0}] * 3)
    assert beside.beside == "its stages take 140% of its steps: some ran side by side"
    stale = {"training/off_policy/trajectory_staleness_worst/max": 2.0}
    older = logged(tmp_path / "stale", [step | stale for step in ALIKE])
    assert "learned from rollouts of older weights" in (older.beside or "")


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([{"gen": 4.0, "step": 6.0}] * 3, r"Missing: seconds of training \(timing_s/update_actor\)$"),
        ([{"timing_s/step": 6.0, "actor/grad_norm": 1.0}] * 3, r"generation \(timing_s/gen\), seconds of training"),
        (ALIKE[:1], "1 numbered steps of its log have their seconds"),
        ([{"gen": 0.0, "update_actor": 1.0, "step": 6.0}] * 3, "seconds of generation are 0 in every step"),
    ],
)
def test_a_log_that_lacks_seconds_is_refused_in_one_line(
    tmp_path: Path, steps: list[dict[str, float]], says: str
) -> None:
    with pytest.raises(UserError, match=says) as caught:
        logged(tmp_path, steps)
    assert "\n" not in str(caught.value)


def test_a_framework_without_such_keys_is_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, LOGS / "trl" / "grpo_stdout_tqdm_2026-08_grpo_test.log")
    with pytest.raises(UserError, match="no key of trl is that"):
        read_logged(folder, {})


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(1, 90), st.integers(1, 90), st.integers(0, 9)), min_size=3, max_size=8))
def test_no_second_of_a_step_is_lost(
    tmp_path_factory: pytest.TempPathFactory, taken: list[tuple[int, int, int]]
) -> None:
    steps = [{"gen": float(g), "update_actor": float(t), "step": float(g + t + rest)} for g, t, rest in taken]
    found = logged(tmp_path_factory.mktemp("log"), steps)
    assert calibrate_logged(found, APART).batches.period == pytest.approx([sum(each) for each in taken])
