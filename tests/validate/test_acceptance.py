"""What a planner owes the published tables: sums, overlap, signs, queues, refusals, and no gain above 2."""

from itertools import pairwise

import pytest

from harness.validate import splits, steps, sweep, systems
from harness.validate.outcome import Check, Outcome, checks
from harness.validate.page import PAGE, refused_rows, validation_page
from harness.validate.table import published


def errors(outcomes: list[Outcome]) -> dict[str, float]:
    return {check.row: check.error for check in checks(outcomes)}


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == validation_page(), "run python -m harness.validate.page"


@pytest.mark.parametrize(
    ("row", "within"),
    [
        ("verl_fa_7b_sync_32", 0.0701),
        ("verl_fa_7b_sync_64", 0.0305),
        ("verl_fa_7b_sync_128", 0.0305),
        ("verl_fa_30b_sync", 0.03),
        ("nemo_log_45_steps", 0.001),
        ("nemo_pr1052_async", 0.001),
    ],
)
def test_sequential_sums(row: str, within: float) -> None:
    assert abs(errors(steps.sequential())[row]) < within


def test_a_sum_of_stages_never_exceeds_its_step() -> None:
    assert all(error < 1e-9 for error in errors(steps.sequential()).values())


def test_speculative_decoding_within_half_a_per_cent() -> None:
    assert abs(errors(steps.one_stage_changed())["measured rollout and training"]) < 0.005


def test_one_step_off_with_one_constant_within_one_per_cent() -> None:
    found = checks(steps.one_step_off())
    assert [round(steps.one_off_rest(published().stages[name])) for name in steps.ONE_OFF] == [62, 65]
    assert all(abs(check.error) < 0.01 for check in found)
    assert all(check.row != check.fitted for check in found[:2]), "each is checked where it was not fitted"


def test_what_does_not_overlap_is_constant_over_the_staleness_sweep() -> None:
    for name in sweep.BUDGETS.values():
        row = published().stages[name]
        assert 3.9 < row.need("step") - row.need("wait") - row.training < 4.4


def test_no_slower_run_is_predicted_faster() -> None:
    slower = {name: outcome for name, reported, outcome in steps.signs() if reported > 1}
    assert set(slower) == {"verl_fa_validate_async", "marin_async_every_update", "marin_async_every_second"}
    assert all(isinstance(outcome, Check) and outcome.predicted > 1 for outcome in slower.values())
    of_nemo = [name for name, reported in systems.equal_devices() if reported > 1]
    assert [name.split(",")[0] for name in of_nemo] == ["v0.4 H100 Qwen3-30B-A3B", "v0.6 GB200 Qwen3-30B-A3B"]
    predicted = {check.row: check.predicted for check in checks(systems.device_seconds())}
    on_policy = {row.name: row for row in published().nemo}
    for name in of_nemo:
        beside = on_policy[name.replace("1-off", systems.ON_POLICY)]
        assert predicted[name] >= beside.need("step")


def test_a_linear_split_is_never_faster_than_the_synchronous_step() -> None:
    by_name = {name: published().stages[sync] for sync, name in steps.PAIRS}
    for check in checks(steps.from_sync_alone()):
        sync = by_name[check.row]
        assert check.predicted >= sync.need("gen") + sync.training


def test_the_wait_falls_with_the_staleness_budget_and_by_less_each_time() -> None:
    for sigma in sweep.SIGMAS:
        found = [one for one in sweep.staleness_sweep() if one.sigma == sigma]
        assert found[0].step == pytest.approx(231.34, rel=0.005), "it is fitted here"
        falls = [(now.wait - then.wait) / (then.budget - now.budget) for now, then in pairwise(found)]
        assert all(fall > 0 for fall in falls)
        assert falls == sorted(falls, reverse=True)


def test_the_queue_of_16_16_drains_and_that_of_24_8_fills() -> None:
    drains, fills = splits.queues()
    assert drains.rho < 1 < fills.rho
    assert drains.depth < 0.5 < 0.9 < fills.depth
    assert drains.closed == 0 < fills.closed
    assert drains.waiting == pytest.approx(drains.starving, abs=0.03)
    assert fills.waiting < 0.03
    assert splits.best_moved() < published().splits[1]["dynamic_over"]


def test_rows_that_cannot_be_are_refused_by_name_and_reason() -> None:
    found = {refusal.row: refusal.reason for refusal in refused_rows()}
    for row, rule in {
        "verl_fa_7b_async_32": "stage_exceeds_step",
        "verl_fa_reqb_1": "parts_exceed_step",
        "v0.5 H100 DeepSeek-V3 DAPO, on-policy, 512 GPUs": "out_of_family",
        "v0.6 H100 Nemotron-3-Nano SWE, 1-off, 128 GPUs": "out_of_family",
        "prime_30b_a3b_16k_8xh100": "rate_is_not_its_batch",
    }.items():
        assert rule in found[row]
    used = {check.row for predict in (steps.waiting, steps.from_sync_alone) for check in checks(predict())}
    assert not used & found.keys()
    assert "no `gen` is printed" in found["marin_async_every_update"]


def test_no_gain_above_two_comes_from_overlap_alone() -> None:
    for gain in published().gains:
        assert systems.most_from_overlap(gain) <= systems.MOST
        if "tail" not in gain:
            assert systems.explained(gain) == systems.most_from_overlap(gain)
