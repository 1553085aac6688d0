"""Calibration: what a ledger of known times says, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import UserError
from harness.simulate.calibrate import calibrate, decoding_law, not_held, shares
from harness.simulate.calibrate_cores import Role, stretched
from harness.simulate.calibrate_predict import Variant, predict
from tests.simulate import worlds
from tests.simulate.measured_cells import GAPS, LABEL, TIMES, times, write_run

WHOLE = (sum(TIMES.values()) + sum(GAPS.values())) / 1e3
TRAINING = sum(TIMES[s] for s in ("forward_backward", "optimizer_step", "weight_sync"))
TRAIN = (TRAINING + GAPS["forward_backward"] + GAPS["weight_sync"]) / 1e3
ROLLOUT = (TIMES["prompt_prep"] + TIMES["prefill"] + TIMES["decode"] + GAPS["prefill"]) / 1e3


def period(folder: Path, layout: str, lag_bound: int = 0, replicas: int = 1, ranks: int = 1) -> float:
    found = calibrate(folder, None)
    told = predict(found, Variant(layout, lag_bound, replicas, ranks), batches=12, resamples=0, seed=1)
    return told.figures["period_s"]


def test_every_part_is_what_was_written_and_they_add_up(tmp_path: Path) -> None:
    found = calibrate(write_run(tmp_path, times()), None)
    parts = shares(found.batches)
    assert parts == pytest.approx(
        {stage: taken / 1e3 for stage, taken in TIMES.items()}
        | {"gap to rollout": 0.001, "gap to verdict": 0.006, "gap to train": 0.006, "gap to publish": 0.007}
    )
    assert found.batches.typical == pytest.approx(WHOLE) == sum(parts.values())
    assert (len(found.batches), found.replicas, found.ranks, found.cell) == (5, 1, 1, LABEL)


def test_a_barrier_takes_the_sum_of_all_parts(tmp_path: Path) -> None:
    folder = write_run(tmp_path, times())
    assert period(folder, "disaggregated_sync") == pytest.approx(WHOLE)
    assert period(folder, "disaggregated_async", 0) == pytest.approx(WHOLE)


def test_colocated_has_no_gaps_between_processes(tmp_path: Path) -> None:
    folder = write_run(tmp_path, times())
    assert period(folder, "colocated_sync") == pytest.approx(sum(TIMES.values()) / 1e3)
    prepared = TIMES["prompt_prep"]
    assert period(folder, "colocated_overlap") == pytest.approx((sum(TIMES.values()) - prepared) / 1e3)


@pytest.mark.parametrize("bound", [2, 4])
def test_a_trainer_that_is_slower_sets_the_period(tmp_path: Path, bound: int) -> None:
    assert period(write_run(tmp_path, times()), "disaggregated_async", bound) == pytest.approx(TRAIN)


def test_a_rollout_that_is_slower_sets_the_period(tmp_path: Path) -> None:
    folder = write_run(tmp_path, times(decode=400))
    assert period(folder, "disaggregated_async", 4) == pytest.approx(ROLLOUT + 0.37)
    assert period(folder, "disaggregated_async", 4, ranks=4) == pytest.approx(ROLLOUT + 0.37)


def test_ranks_are_taken_to_scale_and_replicas_share_the_prompts(tmp_path: Path) -> None:
    folder = write_run(tmp_path, times())
    saved = TIMES["forward_backward"] / 2e3
    assert period(folder, "disaggregated_sync", ranks=2) == pytest.approx(WHOLE - saved)
    halved = (TIMES["prompt_prep"] + TIMES["prefill"] + GAPS["prefill"]) / 2e3
    assert period(folder, "disaggregated_sync", replicas=2) == pytest.approx(WHOLE - halved)


def test_the_time_of_completions_of_one_token_is_not_lost(tmp_path: Path) -> None:
    folder = write_run(tmp_path, times(), lengths=[(1, 1, 1, 1)] * 6)
    assert period(folder, "disaggregated_sync") == pytest.approx(WHOLE)


def test_lag_follows_the_bound(tmp_path: Path) -> None:
    found = calibrate(write_run(tmp_path, times()), None)
    told = [predict(found, Variant("disaggregated_async", b, 1, 1), batches=20, resamples=0, seed=1) for b in (0, 1, 3)]
    assert [each.figures["lag_max"] for each in told] == [0, 1, 3]
    assert told[0].figures["trainer_idle"] == pytest.approx((WHOLE - TRAIN) / WHOLE)


def test_one_core_cannot_overlap_what_computes(tmp_path: Path) -> None:
    roles = [Role(2.0, 1.0), Role(3.0, 1.0)]
    assert stretched(roles, 2, overlap=True) == [1.0, 1.0]
    assert stretched(roles, 1, overlap=False) == [1.0, 1.0]
    assert stretched([Role(2.0, 4.0)], 2, overlap=False) == [2.0]
    both = stretched([Role(1.0, 1.0), Role(1.0, 1.0)], 1, overlap=True)
    assert both == pytest.approx([2.0, 2.0])
    quick = period(write_run(tmp_path / "a", times(), device="cpu", cores=64), "disaggregated_async", 2)
    slow = period(write_run(tmp_path / "b", times(), device="cpu", cores=1), "disaggregated_async", 2)
    assert quick == pytest.approx(TRAIN)
    assert TRAIN < slow < 1.2 * WHOLE


def test_a_decoding_step_is_told_from_its_sequences_where_batches_differ(tmp_path: Path) -> None:
    lengths = [[n, n, 2, 2 + n % 3] for n in (3, 4, 7, 9, 5, 8)]
    batches = [TIMES | {"decode": 4 * (max(ls) - 1) + 0.5 * (sum(ls) - 4)} for ls in lengths]
    found = calibrate(write_run(tmp_path, batches, lengths=lengths), None)
    law = decoding_law(found.batches, found.samples)
    scale = found.batches.typical / found.batches.period.mean()
    assert law.known
    assert (law.step_s / scale, law.sequence_s / scale) == pytest.approx((0.004, 0.0005))
    alike = calibrate(write_run(tmp_path / "alike", times()), None)
    assert decoding_law(alike.batches, 4).known is False
    assert decoding_law(alike.batches, 4).step_s == pytest.approx(0.010)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.integers(1, 50), min_size=8, max_size=8), min_size=4, max_size=6))
def test_no_time_is_lost_or_counted_twice(tmp_path_factory: pytest.TempPathFactory, taken: list[list[int]]) -> None:
    batches = [dict(zip(TIMES, each, strict=True)) for each in taken]
    found = calibrate(write_run(tmp_path_factory.mktemp("run"), batches), None).batches
    wanted = [(sum(each) + sum(GAPS.values())) / 1e3 for each in taken[1:]]
    assert found.period == pytest.approx(wanted)
    assert sum(shares(found).values()) == pytest.approx(found.typical)


def test_several_repeats_are_pooled_and_one_can_be_asked_for(tmp_path: Path) -> None:
    folder = write_run(tmp_path, times(), repeats=2)
    assert len(calibrate(folder, None).batches) == len(calibrate(folder, LABEL).batches) == 10
    assert len(calibrate(folder, f"{LABEL}.r1").batches) == 5


@pytest.mark.parametrize(
    ("how", "cell", "says"),
    [
        ({"ingested": {"framework": "verl"}}, None, "was ingested: it holds what its framework wrote"),
        ({"layout": {"synchrony": "asynchronous"}}, LABEL, "is asynchronous: its stages ran side by side"),
        ({"layout": {"synchrony": "asynchronous"}}, None, "0 synchronous cells that are ok"),
        ({}, "reference.disagregated_sync.free", f"did you mean {LABEL}"),
        ({"configs": {}}, LABEL, "has no configuration of adapter, layout, profile, task"),
    ],
)
def test_what_cannot_be_calibrated_on_is_refused(tmp_path: Path, how: dict[str, Any], cell: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        calibrate(write_run(tmp_path, times(), **how), cell)


def test_a_ledger_that_lacks_what_is_needed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="1 whole batches after the warm-up"):
        calibrate(write_run(tmp_path / "short", times()[:2]), None)
    with pytest.raises(UserError, match="no span of forward_backward"):
        calibrate(write_run(tmp_path / "none", [{"prefill": 3, "decode": 4}] * 4), None)
    behind = [TIMES | {"verifier": -30} for _ in range(5)]
    with pytest.raises(UserError, match="ran side by side"):
        calibrate(write_run(tmp_path / "beside", [dict(b, verifier=-20, collect=40) for b in behind]), None)


def test_colocated_says_nothing_of_what_lies_between_processes(tmp_path: Path) -> None:
    found = calibrate(write_run(tmp_path, times(), layout={"placement": "colocated"}), None)
    told = predict(found, Variant("disaggregated_async", 2, 1, 1), batches=12, resamples=2, seed=1)
    assert told.figures == {}
    assert "calls and transfers between processes were not measured" in (told.refused or "")
    assert any("between processes" in line for line in not_held(found))


SYNC = "rollout={replicas: 1, slots: 16, kv_tokens: null, request: part, step_s: 0.004, step_s_per_sequence: 0.0002, "
SYNC += "prefill_s_per_token: 0.0001, mtbf_s: null, repair_s: 0}"
WORLD = (
    SYNC,
    worlds.BATCH,
    "group_size=4",
    "seconds=null",
    "order=asked",
    "queue.tokens=null",
    "publication.activate_s=0",
)


def simulated(folder: Path, seed: int, steps: int) -> Path:
    words = (*WORLD, f"steps={steps}", f"seed={seed}", "publication.in_flight=wait")
    run, _ = worlds.run(folder, *words, overlap="synchronous")
    return run


@pytest.mark.parametrize("bound", [1, 3])
def test_what_was_simulated_in_step_predicts_what_is_simulated_out_of_step(tmp_path: Path, bound: int) -> None:
    found = calibrate(simulated(tmp_path, 3, 60), None)
    told = predict(found, Variant("disaggregated_async", bound, 1, 1), batches=40, resamples=0, seed=1)
    words = (*WORLD, "steps=400", "seed=5", f"lag_bound={bound}", "publication.in_flight=wait")
    truth = worlds.figures(*words, overlap="shallow")
    assert told.figures["period_s"] == pytest.approx(truth["period_s"], rel=0.05)
    assert told.figures["lag_mean"] == pytest.approx(truth["lag_mean"], abs=0.15)


def test_the_interval_covers_another_run_of_the_same(tmp_path: Path) -> None:
    long = calibrate(simulated(tmp_path / "long", 99, 200), None).batches.typical
    covered = 0
    for seed in range(6):
        found = calibrate(simulated(tmp_path / str(seed), seed, 30), None)
        told = predict(found, Variant("disaggregated_sync", 0, 1, 1), batches=20, resamples=20, seed=seed)
        low, high = told.intervals["period_s"]
        covered += low <= long <= high
    assert covered >= 5


def test_a_seed_gives_the_same_prediction(tmp_path: Path) -> None:
    found = calibrate(write_run(tmp_path, [TIMES | {"forward_backward": 80 + 9 * n} for n in range(6)]), None)
    asked = Variant("disaggregated_async", 2, 1, 1)
    told = [predict(found, asked, batches=20, resamples=4, seed=seed) for seed in (1, 1, 2)]
    assert told[0] == told[1] != told[2]
    low, high = told[0].intervals["period_s"]
    assert low < high
    assert np.isfinite(list(told[0].figures.values())).all()
