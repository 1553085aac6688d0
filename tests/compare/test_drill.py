"""The verdict of a drill, on hand-made ledgers: each thing that a continuation owes is broken in turn."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.compare.drill import DrillVerdict, judge_drill, unjudged
from harness.compare.drill_checks import KILLED
from harness.compare.drill_evidence import Evidence
from harness.contract import CellLedger
from harness.measure.api import MeasureContext, view_of
from harness.measure.view import CellView
from tests.ledgers import CELL_ID
from tests.measure.deaths import COLD, ITEMS, dead_cell
from tests.measure.loops import STEPS, TASK, loop_cell

FAULT: dict[str, Any] = {
    "name": "trainer_dies",
    "restarts": 1,
    "faults": [{"point": "trainer.after_checkpoint", "role": "trainer", "at": 2, "action": "kill"}],
    "kills": [],
    "allowed": {"reward": [-0.3, 0.3], "grad_norm": [0.5, 2.0]},
}
ROW: dict[str, Any] = {
    "cell_id": CELL_ID,
    "adapter": "fake+trainer_dies",
    "layout": "colocated_sync",
    "track": "free",
    "repeat": 0,
    "fault": "trainer_dies",
    "twin": CELL_ID,
    "status": "ok",
    "reason": None,
    "faults_acted": 1,
    "attempts": [
        {"attempt": 0, "status": "failed", "cause": "system", "reason": "killed by signal 9", "wall_s": 1.0},
        {"attempt": 1, "status": "ok", "cause": None, "reason": None, "wall_s": 1.0},
    ],
}

HALF_JUDGED = {"reward_total": [0.0, 1.0, None, 1.0], "status": ["ok", "ok", "infrastructure_error", "ok"]}


def _view(ledger: CellLedger, steps: int = STEPS) -> CellView:
    return view_of(ledger, MeasureContext(TASK | {"steps": steps}, 0))


def _judge(
    folder: Path,
    row: dict[str, Any] | None = None,
    violations: list[str] | None = None,
    queue: str = "keep",
    twin: dict[str, Any] | None = None,
    fault: dict[str, Any] | None = None,
    **death: Any,
) -> DrillVerdict:
    undisturbed = loop_cell(folder / "twin", updates={step: {"loss": 1.0} for step in range(4)}, **(twin or {}))
    drilled = dead_cell(folder / "drilled", **death)
    views = {"view": _view(drilled, death.get("steps", STEPS)), "undisturbed": _view(undisturbed)}
    checkpoint = {"queue": queue, "restore": "full"}
    return judge_drill(
        Evidence(ROW | (row or {}), FAULT | (fault or {}), checkpoint, violations=violations or [], **views)
    )


def _broken(verdict: DrillVerdict) -> list[str]:
    return [check.name for check in verdict.checks if check.result == "broken"]


def _said(verdict: DrillVerdict, name: str) -> str:
    return next(check.said for check in verdict.checks if check.name == name)


def test_a_full_restore_continues_the_same_experiment(tmp_path: Path) -> None:
    verdict = _judge(tmp_path)
    assert verdict.word == "continues the same experiment", verdict.checks
    assert verdict.continues is True
    assert [item.state for item in verdict.items] == ["restored"] * 3
    assert "optimizer steps done again: 1" in verdict.cost
    assert "from death to the first good step" in verdict.cost
    assert _said(verdict, "metrics within range") == "reward 0 (0 undisturbed); grad_norm 1 (1 undisturbed)"
    assert verdict.as_dict()["divergence"]["steps_alike"] == 0  # its losses before the death are none


@pytest.mark.parametrize(
    ("broken", "change"),
    [
        ("the fault happened", {"row": {"faults_acted": 0}}),
        ("the run came to its end", {"row": {"status": "failed", "reason": "it hung"}}),
        ("ledger lawful", {"violations": ["tokens_close: 3 too many"]}),
        ("checkpoint restored", {"items": ITEMS | {"rng": ITEMS["rng"] | {"state": "lost", "found": ""}}}),
        ("policy version continuous", {"version": 0}),
        ("control batch sound", {"updates": {2: {"loss": float("nan")}}}),
        ("components unchanged", {"changes": {"verifier_version": ["v2"] * 4}}),
        ("metrics within range", {"changes": {"reward_total": [0.0, 0.0, 0.0, 1.0]}}),
        ("no partial batch trained", {"changes": HALF_JUDGED}),
        (
            "prompts neither repeated nor skipped",
            {"changes": {"group_id": ["p7.b2", "p7.b2", "p1.b2", "p1.b2"]}, "died": 2},
        ),
    ],
)
def test_what_a_continuation_owes_is_broken_by_name(tmp_path: Path, broken: str, change: dict[str, Any]) -> None:
    verdict = _judge(tmp_path, **change)
    assert broken in _broken(verdict)
    assert verdict.continues is False
    assert broken in verdict.word


def test_a_cold_optimizer_is_named_although_the_loop_calls_it_restored(tmp_path: Path) -> None:
    verdict = _judge(tmp_path, items=COLD)
    assert {"optimizer not cold", "checkpoint restored"} <= set(_broken(verdict))
    assert "saved bb, found dd" in _said(verdict, "optimizer not cold")
    assert [item.state for item in verdict.items] == ["restored", "restarted", "restored"]


def test_a_queue_is_lost_as_declared_or_not(tmp_path: Path) -> None:
    items = ITEMS | {"queue": {"state": "lost", "saved": "ee", "found": "", "evidence": "discarded"}}
    assert _broken(_judge(tmp_path / "keep", items=items)) == ["checkpoint restored"]
    assert _judge(tmp_path / "discard", items=items, queue="discard").continues is True


def test_samples_that_are_gone_have_to_be_counted(tmp_path: Path) -> None:
    verdict = _judge(tmp_path / "gone", twin={"steps": 5})
    assert "4 fewer, 0 of them counted as lost" in _said(verdict, "trained samples accounted for")
    assert "trained samples accounted for" in _broken(verdict)
    lost = {"t": 1, "kind": "rollouts_lost", "cause": "system", "where": "gen-4~1", "detail": "the worker died"}
    counted = _judge(tmp_path / "counted", twin={"steps": 5}, faults=[lost])
    assert "trained samples accounted for" not in _broken(counted)


def test_a_framework_that_dies_of_a_lost_verdict_is_told_from_one_that_goes_on(tmp_path: Path) -> None:
    name, failing = "a lost verdict ends no run", {"faults": [{"role": "verifier-0"}], "kills": []}
    died = _judge(tmp_path / "died", fault=failing)
    assert name in _broken(died)
    assert "the framework died of it: killed by signal 9" in _said(died, name)
    on = _judge(tmp_path / "on", fault=failing, row={"attempts": ROW["attempts"][1:]})
    assert "the run went on without them" in _said(on, name)
    assert "nothing was done to the verifier" in _said(_judge(tmp_path / "other"), name)


def test_a_kill_from_outside_is_a_fault_that_happened(tmp_path: Path) -> None:
    killed = {"t": 1, "kind": KILLED, "cause": "harness", "where": "main", "detail": "SIGKILL to main at 1 s"}
    verdict = _judge(tmp_path, row={"faults_acted": 0}, faults=[killed])
    assert "SIGKILL to main" in _said(verdict, "the fault happened")
    assert verdict.continues is True


def test_a_run_that_began_again_kept_nothing(tmp_path: Path) -> None:
    verdict = _judge(tmp_path, resumed=0, kept=False, version=0, items={})
    assert "began again" in _said(verdict, "checkpoint restored")
    assert verdict.continues is True


def test_a_death_after_the_last_step_leaves_no_step_to_judge(tmp_path: Path) -> None:
    verdict = _judge(tmp_path, died=3, resumed=3, steps=3, twin={"steps": 3})
    assert "no step was left to take" in _said(verdict, "control batch sound")
    assert verdict.continues is True, verdict.checks


def test_every_restart_of_a_cell_is_judged(tmp_path: Path) -> None:
    """Not only the last one, after which nothing changed."""
    drilled = dead_cell(tmp_path / "drilled", changes={"reward_total": [0.0, 0.0, 0.0, 1.0]})
    undisturbed = _view(loop_cell(tmp_path / "twin", updates={step: {"loss": 1.0} for step in range(4)}))
    evidence = Evidence(ROW, FAULT, {"queue": "keep"}, _view(drilled), undisturbed, [])
    (first,) = evidence.resumes
    evidence.resumes.append(replace(first, attempt=2, step=STEPS, policy_version=STEPS))
    said = _said(judge_drill(evidence), "metrics within range")
    assert said.startswith(f"step {first.step}: reward outside [-0.3, 0.3]")


def test_each_of_several_kills_has_to_happen(tmp_path: Path) -> None:
    fault = FAULT | {"faults": [], "kills": [{"process": "*", "unit": "steps", "low": 0, "high": 4, "times": 2}]}
    killed = {"t": 1, "kind": KILLED, "cause": "harness", "where": "main", "detail": "SIGKILL to main at 1 s"}
    view = _view(dead_cell(tmp_path, faults=[killed]))
    verdict = judge_drill(Evidence(ROW | {"faults_acted": 0}, fault, {"queue": "keep"}, view, None, []))
    assert _said(verdict, "the fault happened").startswith("1 of 2 acted")
    assert "the fault happened" in _broken(verdict)


def test_without_an_undisturbed_run_it_cannot_be_told(tmp_path: Path) -> None:
    evidence = Evidence(ROW, FAULT, {"queue": "keep"}, _view(dead_cell(tmp_path)), None, [])
    verdict = judge_drill(evidence)
    assert verdict.continues is None
    assert verdict.word.startswith("cannot be told: prompts")
    assert "no undisturbed run" in verdict.apart


def test_a_cell_that_left_nothing_is_not_passed_over(tmp_path: Path) -> None:
    verdict = unjudged(ROW | {"status": "not_run"}, "it was not run: no such layout")
    assert verdict.continues is None
    assert "no such layout" in verdict.checks[0].said
