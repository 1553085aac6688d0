"""Reports about lag, restarts, trackers and rewards that never came (A23 to A26)."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.audit.check import check_cell
from harness.audit.own import cases_of_cell, own_findings
from harness.contract import read_cell
from harness.ingest.examine import examine
from harness.ingest.ingest import ingest
from harness.measure.figures.recovery import state_of
from tests.audit.test_attempts import TASK, _at, _without, two_attempts
from tests.audit.test_own import measured
from tests.bug_reports.toys import SMALL, cell, found
from tests.measure.loops import figures, loop_cell


@pytest.mark.parametrize(("ahead", "declared"), [(1, 0), (2, 0), (2, 1), (3, 2), (4, 0), (4, 3)])
def test_a23_lag_is_told_by_versions_and_not_by_settings(tmp_path: Path, ahead: int, declared: int) -> None:
    """verl#4449, 2025-12-08, verl#6780, 2026-06: fully async with trigger 1 and staleness 0 is one step behind in
    every batch, though the settings say 0."""
    late = measured(tmp_path, SMALL | {"steps": 8, "warmup_steps": 4}, ahead=ahead)
    assert late.figures["lag_p50"] == late.figures["lag_max"] == late.figures["token_lag[mean]"] == ahead
    assert late.given["lag_config"] == ahead
    assert own_findings(cases_of_cell(late)) == []
    (finding,) = own_findings(cases_of_cell(replace(late, given=dict(late.given) | {"lag_config": float(declared)})))
    assert finding.rule == "lag_beyond_config"
    assert f"lag {ahead} by versions, {declared} by the settings" in finding.evidence


VERSIONS = [
    ([5, 5, 3, 5], 5),
    ([5, 4, 3, 2], 5),
    ([0, 0, 0, 0], 5),
    ([5, 5, 5, 5], 5),
    ([4, 4, 4, 5], 5),
    ([1, 5, 1, 5], 5),
]


@pytest.mark.parametrize(("versions", "now"), VERSIONS)
def test_a23_one_lag_is_three(tmp_path: Path, versions: list[int], now: int) -> None:
    """PipelineRL PR#152, 2026-07-15: a key named `lag` was the largest; versions 5, 5 and 3 at version 5 are lags of 0
    to 2, and 0.667 on average."""
    length = 3
    same: dict[str, Any] = {"response_tokens": [[7] * length] * 4, "policy_mask": [[0] * 3 + [1] * length] * 4}
    same |= {"behavior_logprobs": [[-0.5] * length] * 4}
    ledger = loop_cell(tmp_path, same, steps=now + 1, batches={now: {"policy_version": versions}})
    seen = figures(ledger, warmup_steps=now)
    lags = [now - version for version in versions]
    assert [seen[f"token_lag[{which}]"].value for which in ("smallest", "mean", "largest")] == pytest.approx(
        [min(lags), sum(lags) / 4, max(lags)]
    )
    assert seen["lag_max"].value == max(lags)


PARTIAL = [[3, 5, 5], [0, 5, 5], [4, 4, 5], [1, 2, 3], [5, 5, 5], [0, 0, 5]]


@pytest.mark.parametrize("versions", PARTIAL)
def test_a23_a_partial_trajectory_is_as_old_as_its_oldest_token(tmp_path: Path, versions: list[int]) -> None:
    """verl PR#7569: trajectories that several versions sampled were judged by their last one."""
    same: dict[str, Any] = {"response_tokens": [[7] * 3] * 4, "policy_mask": [[0] * 3 + [1] * 3] * 4}
    same |= {"behavior_logprobs": [[-0.5] * 3] * 4}
    ledger = loop_cell(tmp_path, same, steps=6, batches={5: {"token_policy_versions": [versions] * 4}})
    seen = figures(ledger, warmup_steps=5)
    assert seen["lag_p50"].value == 5 - versions[0]
    assert seen["token_lag[smallest]"].value == 5 - versions[-1]
    assert seen["token_lag[mean]"].value == pytest.approx(5 - sum(versions) / 3, rel=1e-5)


def _duplicate(first: str, second: str) -> Any:
    return _at("trained", "sample_id", first, sample_id=second)


LEDGERS = [
    (_duplicate("p0.b0.g0", "p0.b2.g0"), "trained_once_an_epoch"),
    (_duplicate("p0.b0.g1", "p0.b2.g1"), "trained_in_one_batch"),
    (_duplicate("p0.b1.g0", "p0.b2.g0"), "trained_once_an_epoch"),
    (_without("fates", sample_id="p0.b2.g1"), "fate_of_each_sample"),
    (_without("fates", sample_id="p0.b0.g0"), "fate_of_each_sample"),
    (_at("fates", "fate", "in_flight", sample_id="p0.b2.g0"), "fate_has_reason"),
]


@pytest.mark.parametrize(("change", "law"), LEDGERS, ids=[f"{n}-{law}" for n, (_, law) in enumerate(LEDGERS)])
def test_a24_samples_across_a_restart(tmp_path: Path, change: Any, law: str) -> None:
    """OpenRLHF#1320 and #1322, 2026-09-04: a buffer gave samples 0 and 1 twice and 2 never, and a restart left out
    those that it had drawn ahead. Duplicates and drops of an interrupted run are named."""
    ledger = two_attempts(tmp_path, change)
    assert law in {violation.rule for violation in check_cell(ledger.directory, ledger.cell_id, TASK, None)}


def test_a24_an_interrupted_run_trains_on_what_a_whole_one_does(tmp_path: Path) -> None:
    """OpenRLHF#1322: the multiset of what was trained on."""
    ledger = two_attempts(tmp_path)
    trained = Counter(ledger.table("trained")["sample_id"].to_pylist())
    assert trained == {f"p0.b{batch}.g{place}": 1 for batch in range(3) for place in range(2)}


DRAWS = [
    ("restored", "a", "a", "restored"),
    ("restored", "a", "b", "restarted"),
    ("restored", "a", "", "restarted"),
    ("restarted", "a", "a", "restarted"),
    ("lost", "a", "a", "lost"),
    ("restored", "0f" * 32, "0f" * 32, "restored"),
]


@pytest.mark.parametrize(("said", "saved", "now", "right"), DRAWS)
def test_a24_a_random_state_that_was_seeded_over(said: str, saved: str, now: str, right: str) -> None:
    """ms-swift PR#9935, 2026-08-17: the restored random state was overwritten by seeding again. What counts is the
    digest of the state that goes on, not that it was loaded."""
    assert state_of({"state": said, "saved": saved, "found": now, "evidence": ""}) == right


BACK = [([249, 203], 203), ([154, 101], 101), ([1, 2, 3, 2], 2), ([10, 10], 10), ([5, 6, 0], 0), ([100, 99], 99)]


@pytest.mark.parametrize(("steps", "again"), BACK)
def test_a25_a_step_number_that_runs_back(tmp_path: Path, steps: list[int], again: int) -> None:
    """prime-rl PR#1516, #1530 and #1668, 2025-12-31..2026-01-26, ms-swift#7080, 2025-12-16, ray PR#46897: a tracker
    that counts calls drifts away from the step, drops what comes later, or has steps twice after a restart."""
    path = tmp_path / "run.log"
    path.write_text("".join(f"step:{step} - actor/grad_norm:{0.5 + place}\n" for place, step in enumerate(steps)))
    told = [(finding.rule, finding.where.step) for finding in examine([str(path)]).findings]
    assert told == [("step_runs_back", again)]
    path.write_text("".join(f"step:{step} - actor/grad_norm:0.5\n" for step in sorted(set(steps))))
    assert examine([str(path)]).findings == []


AGAIN = [
    ([1, 2, 3], [2, 3, 4]),
    ([100, 101, 102, 103], [101, 102, 103, 104]),
    ([1, 2, 3, 4, 5], [3, 4, 5, 6, 7]),
    ([5, 6], [6, 7]),
    ([1, 2, 3, 4], [1, 2, 3, 4, 5]),
    ([10, 11, 12], [12, 13]),
]


@pytest.mark.parametrize(("first", "second"), AGAIN)
def test_a25_a_resumed_run_has_each_step_once(tmp_path: Path, first: list[int], second: list[int]) -> None:
    """prime-rl PR#1668, 2026-01-26: after a restart steps 101 to 154 were there twice. The later writing counts, what
    it replaced is kept apart, and the seam is marked."""
    log = tmp_path / "run.log"
    told = [(step, 1.0) for step in first] + [(step, 2.0) for step in second]
    log.write_text("".join(f"step:{step} - actor/grad_norm:{value}\n" for step, value in told))
    (run,) = ingest([str(log)], tmp_path / "runs", lambda sources: lambda moved: None).runs
    (counts,) = (one for one in run.series if one.trained and one.key == "actor/grad_norm")
    rows = read_cell(run.folder / "ledger", "ingested.r0").table("native", ["step", "key", "value"]).to_pylist()
    kept = {row["step"]: row["value"] for row in rows if row["key"] == counts.stored}
    assert counts.n == len(kept) == len({*first, *second})
    assert kept == {step: 2.0 if step in second else 1.0 for step in {*first, *second}}
    assert len(run.manifest["seams"]) == 1
    assert sum(row["key"] != counts.stored for row in rows) >= len(set(first) & set(second))


@pytest.mark.parametrize("calls", [5, 2, 3, 4, 7, 1])
def test_a25_a_tracker_that_counts_calls(tmp_path: Path, calls: int) -> None:
    """ms-swift#7080, 2025-12-16, ray PR#46897: with 5 calls a step and no step handed over, the tracker's own number is
    five times the step, and a later explicit one is dropped. The step is the framework's own column."""
    keys = ["loss", "grad_norm", "learning_rate", "reward", "kl", "entropy", "reward_std"][:calls]
    rows = [
        {"_step": calls * (step - 1) + call, "train/global_step": step, f"train/{key}": 0.5 * step}
        for step in range(1, 5)
        for call, key in enumerate(keys)
    ]
    log = tmp_path / "history.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (run,) = ingest([str(log)], tmp_path / "runs", lambda sources: lambda moved: None).runs
    assert run.manifest["steps"] == 4
    table = read_cell(run.folder / "ledger", "ingested.r0").table("native", ["step", "key", "value"]).to_pylist()
    for key in keys:
        (one,) = (series for series in run.series if series.key == f"train/{key}")
        assert {row["step"]: row["value"] for row in table if row["key"] == one.stored} == {
            step: 0.5 * step for step in range(1, 5)
        }
    assert examine([str(log)]).findings == []


@pytest.mark.parametrize(
    ("done", "prompts", "size"), [(511, 64, 8), (500, 64, 8), (7, 4, 2), (0, 2, 2), (1023, 128, 8), (95, 6, 16)]
)
def test_a26_a_shortfall_is_counted(done: int, prompts: int, size: int) -> None:
    """verl PR#6673, 2026-06-09, verl#7155, 2026-07: one lost rollout of 512 held up its step for ever."""
    numbers = {"samples": done, "prompts": prompts, "group_size": size}
    assert f"{done} responses" in found(numbers)["samples_missing"].evidence
    assert not found(numbers | {"samples": prompts * size})


@pytest.mark.parametrize("every", [2, 3, 4, 5, 7, 8])
def test_a26_a_reward_that_never_came_is_no_zero(tmp_path: Path, every: int) -> None:
    """Math-Verify#65, 2025-07-09, verl PR#6673: a verifier's time-out is an error of its own sample, the step goes on
    and the group is incomplete (the time limit itself: tests/task/test_verifier.py)."""
    seen = cell(tmp_path, {"prompts_per_batch": 4}, error_every=every)
    missing = seen["infrastructure_error_share"]
    assert missing.value == pytest.approx(1 / every, abs=0.07)
    assert missing.value
    assert missing.numerator
    assert seen["verified_outcomes_per_second"].numerator == 32 - missing.numerator
    assert seen["optimizer_steps_per_hour"].numerator == 2
    assert seen["token_closure_gap"].value == 0
