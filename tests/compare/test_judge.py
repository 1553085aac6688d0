"""Every state, each with its reason, from cells whose difference is known."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from harness.commands.exit_codes import exit_code
from harness.compare.gates import PART, STEP
from harness.compare.judge import judge, judge_all
from harness.compare.judgement import Judgement
from harness.compare.null_test import NullTest
from harness.compare.results import CellResult
from harness.measure.values import Value
from tests.compare.judged_cells import MEMORY, arm, cell, values

OOM = {"status": "failed", "cause": "system", "reason": "out of memory"}
PIN, NEW = "trl@1.16.0", "trl@1.15.0"


def judged(new: list[CellResult], pin: list[CellResult] | None = None, **changes: Any) -> dict[str, Judgement]:
    found = judge([*new, *(pin or arm(PIN, 1))], NEW, PIN, **{"null": None} | changes)
    return {judgement.name: judgement for judgement in found}


def states(found: dict[str, Judgement]) -> set[str]:
    return {judgement.state for judgement in found.values()}


def test_a_planted_slowdown_is_found_named_by_stage_and_ends_with_1() -> None:
    found = judged(arm(NEW, 2, slower={"decode": 1.15}))
    step = found[STEP]
    assert step.state == "worse"
    assert step.effect == pytest.approx(1.06, abs=0.005)
    assert step.low is not None
    assert step.high is not None
    assert step.low < 1.06 < step.high
    assert step.explained_by is not None
    assert step.explained_by.stage == "decode"
    assert step.explained_by.share == pytest.approx(1.0, abs=0.15)
    assert found[f"{PART}[rollout]"].state == "worse"
    assert found[f"{PART}[train]"].state == found[MEMORY].state == "no change"
    assert exit_code(found.values()) == 1


def test_a_slowdown_of_one_stage_that_hardly_moves_the_step_is_found_in_its_part() -> None:
    found = judged(arm(NEW, 2, slower={"weight_sync": 1.3}))
    assert found[STEP].state == "no change"
    assert found[f"{PART}[sync]"].state == "worse"
    explained = found[f"{PART}[sync]"].explained_by
    assert explained is not None
    assert (explained.stage, explained.share) == ("weight_sync", pytest.approx(1.0))
    assert exit_code(found.values()) == 1


def test_faster_is_better_and_less_memory_too() -> None:
    found = judged(arm(NEW, 2, slower={"decode": 0.7, "forward_backward": 0.7}, memory=8e8))
    assert found[STEP].state == found[MEMORY].state == "better"
    assert found[STEP].explained_by is not None
    assert found[STEP].explained_by.seconds < 0
    assert exit_code(found.values()) == 0


def test_no_change_says_what_it_could_have_found() -> None:
    found = judged(arm(NEW, 2))
    assert states(found) == {"no change"}
    assert all(judgement.detectable and 0.02 <= judgement.detectable <= 0.05 for judgement in found.values())
    assert exit_code(found.values()) == 0


def test_a_real_but_small_difference_is_within_the_margin() -> None:
    found = judged(arm(NEW, 2, noise=0.0005, slower={"decode": 1.03}), arm(PIN, 1, noise=0.0005))
    assert found[STEP].state == "no change"
    assert found[STEP].reason == "a difference of +1.2% is there, within the margin of 2.0%"
    assert found[STEP].p_adjusted is not None
    assert found[STEP].p_adjusted < 0.05


@pytest.mark.parametrize("repeats", [1, 2])
def test_fewer_than_three_pairs_tell_nothing_however_large_the_difference(repeats: int) -> None:
    found = judged(arm(NEW, 2, repeats, slower={"decode": 3.0}), arm(PIN, 1, repeats))
    assert states(found) == {"cannot tell"}
    assert f"{repeats} pair" in found[STEP].reason
    assert "takes 3" in found[STEP].reason
    assert exit_code(found.values()) == 2


def test_noise_in_which_the_change_sought_would_drown_is_cannot_tell() -> None:
    found = judged(arm(NEW, 2, noise=0.15), arm(PIN, 1, noise=0.15))
    assert states(found) == {"cannot tell"}
    assert "could not have found less than" in found[STEP].reason
    assert exit_code(found.values()) == 2


def test_an_interval_that_holds_the_change_sought_is_cannot_tell() -> None:
    ours = [cell(NEW, k, values(step)) for k, step in enumerate((1.05, 1.03, 1.046, 1.026, 1.038))]
    step = judged(ours, [cell(PIN, k) for k in range(5)], null=null(margin=0.04))[STEP]
    assert step.state == "cannot tell"
    assert step.reason == "its interval, +2.5% to +5.1%, holds a change of the 5% that is sought"


def null(noise: float = 0.01, margin: float = 0.0, failed: str | None = None) -> NullTest:
    return NullTest("reference", "colocated_sync", "free", 5, [], 0.1, noise, {STEP: margin}, None, failed)


def test_what_the_null_test_showed_is_no_difference() -> None:
    slow = arm(NEW, 2, slower={"decode": 1.1})
    assert judged(slow, null=null())[STEP].state == "worse"
    found = judged(slow, null=null(margin=0.045))[STEP]
    assert found.margin == 0.045
    assert found.state != "worse"


def test_a_null_test_that_failed_or_never_ended_voids_every_verdict() -> None:
    slow = arm(NEW, 2, slower={"decode": 1.5})
    for test, word in ((null(failed="it differs"), "it differs"), (replace(null(), noise=None), "has not ended")):
        found = judged(slow, null=test)
        assert states(found) == {"cannot tell"}
        assert word in found[STEP].reason
        assert found[STEP].effect is not None


def test_a_machine_that_others_used_gives_cannot_tell_and_not_worse() -> None:
    slow = arm(NEW, 2, slower={"decode": 1.5})
    slow[3] = replace(slow[3], foreign_cores=0.8)
    found = judged(slow)
    assert states(found) == {"cannot tell"}
    assert found[STEP].reason == f"other processes used 0.8 cores during {NEW}.colocated_sync.free.r3 (limit 0.25)"
    assert exit_code(found.values()) == 2
    assert judged(slow, foreign_limit=1.0)[STEP].state == "worse"
    slow[3] = replace(slow[3], foreign_cores=None)
    assert judged(slow)[STEP].state == "worse"
    assert judged(slow)[STEP].reason == "what other processes used is not known"


def test_a_setting_that_differs_is_named_and_one_of_no_work_is_not() -> None:
    def held(learning_rate: float, eps: float) -> list[dict[str, Any]]:
        rows = {"learning_rate": learning_rate, "advantage_eps": eps}
        return [{"setting": k, "asked": v, "in_force": v, "grade": "exact", "note": ""} for k, v in rows.items()]

    pin = arm(PIN, 1, fidelity=held(1e-3, 1e-4))
    assert states(judged(arm(NEW, 2, fidelity=held(1e-3, 1e-6)), pin)) == {"no change"}
    found = judged(arm(NEW, 2, fidelity=held(1e-4, 1e-4)), pin)
    assert states(found) == {"not comparable"}
    assert found[STEP].reason == f"learning_rate is 0.0001 here and 0.001 in {PIN}"
    assert exit_code(found.values()) == 3


def longer(cells: list[CellResult], factor: float) -> list[CellResult]:
    def stretched(value: Value) -> Value:
        return replace(value, value=10.0 * factor) if value.tag == "completion_length" else value

    return [replace(one, values=[stretched(value) for value in one.values]) for one in cells]


def test_longer_texts_are_not_comparable_and_a_little_longer_ones_widen_the_margin() -> None:
    found = judged(longer(arm(NEW, 2), 1.2))
    assert states(found) == {"not comparable"}
    assert "completion length" in found[STEP].reason
    slow = longer(arm(NEW, 2, slower={"decode": 1.1}), 1.045)
    assert judged(slow)[STEP].margin == pytest.approx(0.045)
    assert judged(slow)[STEP].state != "worse"
    fixed = [replace(one, track="fixed_length") for one in [*slow, *arm(PIN, 1)]]
    assert judge(fixed, NEW, PIN, None)[0].state == "worse"


def test_a_figure_that_one_side_lacks_is_not_comparable() -> None:
    def silent(one: CellResult) -> CellResult:
        reason = "memory was not sampled"
        kept = [replace(v, value=None, reason=reason) if v.tag == MEMORY else v for v in one.values]
        return replace(one, values=kept)

    found = judged([silent(one) for one in arm(NEW, 2)])
    assert found[MEMORY].state == "not comparable"
    assert found[MEMORY].reason == f"only {PIN} has this figure: memory was not sampled"
    assert found[STEP].state == "no change"
    neither = judged([silent(one) for one in arm(NEW, 2)], [silent(one) for one in arm(PIN, 1)])
    assert MEMORY not in neither


def test_a_figure_that_is_0_in_both_has_no_ratio_and_is_left_out() -> None:
    def without_memory(one: CellResult) -> CellResult:
        return replace(one, values=[replace(v, value=0.0) if v.tag == MEMORY else v for v in one.values])

    found = judged([without_memory(one) for one in arm(NEW, 2)], [without_memory(one) for one in arm(PIN, 1)])
    assert MEMORY not in found
    assert found[STEP].state == "no change"


def test_one_failure_of_its_own_is_a_regression_and_not_a_verdict_over_the_rest() -> None:
    new = arm(NEW, 2)
    new[2] = cell(NEW, 2, **OOM)
    found = judged(new)
    assert states(found) == {"failed"}
    assert found[STEP].cause == "system"
    assert found[STEP].reason == "1 of 5 repeats failed (system): out of memory"
    assert exit_code(found.values()) == 1


def test_a_repeat_that_the_machine_lost_is_left_out_and_told() -> None:
    new = arm(NEW, 2, repeats=6)
    new[2] = cell(NEW, 2, status="failed", cause="infrastructure", reason="disk full")
    found = judged(new, arm(PIN, 1, repeats=6))
    assert found[STEP].pairs == 5
    assert found[STEP].state == "no change"
    assert f"without {NEW}.colocated_sync.free.r2: failed (infrastructure)" in found[STEP].reason


@pytest.mark.parametrize(
    ("new", "pin", "state", "cause", "code"),
    [
        (OOM, {}, "failed", "system", 1),
        (OOM | {"cause": "infrastructure"}, {}, "failed", "infrastructure", 3),
        ({}, OOM, "failed", None, 3),
        (OOM, OOM, "failed", None, 3),
        ({"status": "not_run", "reason": "needs a GPU"}, {}, "not run", None, 3),
        ({}, {"status": "not_run", "reason": "needs a GPU"}, "not run", None, 3),
    ],
)
def test_what_did_not_end_well(
    new: dict[str, Any], pin: dict[str, Any], state: str, cause: str | None, code: int
) -> None:
    found = judged([cell(NEW, k, **new) for k in range(5)], [cell(PIN, k, **pin) for k in range(5)])
    assert states(found) == {state}
    assert {judgement.cause for judgement in found.values()} == {cause}
    assert all(judgement.reason for judgement in found.values())
    assert exit_code(found.values()) == code


def test_repeats_that_share_no_number_are_not_paired() -> None:
    new = [replace(one, repeat=one.repeat + 5) for one in arm(NEW, 2, slower={"decode": 1.5})]
    found = judged(new)
    assert found[STEP].state == "worse"
    assert not found[STEP].paired
    assert found[STEP].pairs == 5
    few = judged(new[:3])
    assert states(few) == {"cannot tell"}
    assert few[STEP].reason == "only 3 repeats of one side ended well, and a verdict takes 4"


def test_repeats_that_agree_to_the_last_digit_are_sure() -> None:
    found = judged([cell(NEW, k, values(1.0, {"decode": 1.2})) for k in range(3)], [cell(PIN, k) for k in range(3)])
    assert (found[STEP].state, found[STEP].p) == ("worse", 0.0)
    assert (found[MEMORY].state, found[MEMORY].detectable) == ("no change", 0.02)


def test_a_part_that_takes_a_twentieth_of_the_step_is_no_gate() -> None:
    small = [replace(v, value=0.04) if v.variant == "sync" and v.tag == PART else v for v in values(1.0)]
    found = judged([cell(NEW, k, small) for k in range(3)], [cell(PIN, k, small) for k in range(3)])
    assert f"{PART}[sync]" not in found


def test_all_against_one_by_name_and_nothing_without_a_baseline() -> None:
    cells = [*arm("trl", 1), *arm("areal", 2), *arm("reference", 3)]
    found = judge_all(cells, "reference", {})
    assert list(dict.fromkeys(one.adapter for one in found)) == ["areal", "trl"]
    assert judge_all(arm("trl", 1), "reference", {}) == []


def test_a_judgement_is_read_back_as_it_was() -> None:
    for found in judged(arm(NEW, 2, slower={"decode": 1.5})).values():
        assert Judgement.from_dict(json.loads(json.dumps(found.as_dict(), allow_nan=False))) == found
    endless = replace(found, detectable=math.inf)
    assert Judgement.from_dict(json.loads(json.dumps(endless.as_dict(), allow_nan=False))) == endless
