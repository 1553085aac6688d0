"""Blocks as cases: rows of one step are one case, a step that comes back is another, a summary has no step."""

from harness.audit.quantities import Case
from harness.audit.rule import findings
from harness.audit.rules import RULES
from harness.ingest.cases import Place, cases_of
from harness.ingest.keymap import key_map
from harness.ingest.reading import Block

PLACE = Place("metrics.jsonl", key_map("prime_rl"))


def row(step: int, line: int, scope: str = "trainer", **values: float) -> Block:
    named = {key.replace("__", "/"): value for key, value in values.items()}
    return Block(step, line, "training", {"time": float(line)} | named, scope)


def rules(cases: list[Case]) -> list[str]:
    return [finding.rule for case in cases for finding in findings(case, RULES)]


def test_rows_of_one_step_are_one_case_although_another_process_writes_between_them() -> None:
    rows = [
        row(1, 1, perf__mfu=5.0),
        row(1, 2, "orchestrator", time__step=2.0),
        row(1, 3, time__step=2.0, time__wait_for_batch=0.5),
        row(2, 4, perf__mfu=6.0),
        row(2, 5, "orchestrator", time__step=2.0),
        row(2, 6, time__step=2.0, time__wait_for_batch=0.5),
    ]
    cases = list(cases_of(rows, PLACE))
    assert [(case.name, len(case.observations)) for case in cases] == [
        ("step 1 of trainer", 4),
        ("step 1 of orchestrator", 2),
        ("step 2 of trainer", 4),
        ("step 2 of orchestrator", 2),
    ]
    step, mfu = cases[0].one("step_seconds"), cases[0].one("mfu")
    assert step is not None
    assert mfu is not None
    assert (mfu.where.line, step.where.line) == (1, 3)
    assert rules(cases) == []


def test_a_step_that_comes_back_is_another_case() -> None:
    cases = list(cases_of([row(n, n, perf__mfu=5.0) for n in (1, 2, 2, 1)], PLACE))
    assert len(cases) == 4
    assert rules(cases) == ["step_runs_back"] * 2


def test_a_summary_repeats_the_last_step_and_is_no_step() -> None:
    last = Block(9, 9, "summary", {"perf/mfu": 120.0})
    cases = list(cases_of([row(9, 1, "", perf__mfu=5.0), last], PLACE))
    assert sorted(rules(cases)) == ["mfu_over_one"]


def test_validation_and_settings_are_not_asked() -> None:
    blocks = [Block(1, 1, kind, {"perf/mfu": 120.0}) for kind in ("validation", "config")]
    assert list(cases_of(blocks, PLACE)) == []
