"""The conformance kit: install, smoke, schema, counters, closure, hook drift, fidelity, time-out, crash."""

from pathlib import Path

from harness.audit import check_run
from harness.execute.adapter import find_adapter
from harness.execute.doctor import diagnose
from harness.report.build import build_report
from tests.conformance.conftest import SmallRun, run_small

STEPS, COMPLETIONS = 4, 8
NOTES = {"settings", "versions", "trainer_models", "window", "engine", "absent_stages", "device_count"}


def test_it_runs(small_run: SmallRun) -> None:
    assert (small_run.row["status"], small_run.row["reason"]) == ("ok", None)


def test_its_ledger_is_whole_and_lawful(small_run: SmallRun) -> None:
    assert check_run(small_run.folder) == []


def test_it_did_the_work_that_was_asked(small_run: SmallRun) -> None:
    updates = small_run.ledger.table("updates").to_pylist()
    assert [update["step"] for update in updates] == list(range(STEPS))
    assert all(update["records"] == COMPLETIONS for update in updates)
    assert small_run.ledger.table("rollouts").num_rows == STEPS * COMPLETIONS


def test_it_writes_every_note(small_run: SmallRun) -> None:
    assert NOTES | {"final_parameter_sha256"} <= small_run.ledger.manifest.keys()


def test_fidelity_speaks_of_every_task_setting(small_run: SmallRun) -> None:
    config = next(iter(small_run.manifest["configs"].values()))["resolved"]
    spoken = {row["setting"] for row in small_run.row["fidelity"]}
    assert spoken >= set(config["task"]) - {"name", "dataset", "generator", "warmup_steps", "verifier_timeout_s"}


def test_the_report_explains_every_null(small_run: SmallRun) -> None:
    model = build_report(small_run.folder)
    assert [row for row in model.rows if row.value is None and not row.reason] == []


def test_no_hook_has_drifted(adapter: str) -> None:
    checks = {check.name: check for check in diagnose(find_adapter(adapter).name, "cpu")}
    assert all(check.ok for name, check in checks.items() if "hook" in name)


def test_a_hang_is_a_row(adapter: str, tmp_path: Path) -> None:
    run = run_small(adapter, tmp_path, "profile.time_limit_s=0.05")
    assert (run.row["status"], run.row["cause"]) == ("failed", "system")
    assert "hung" in run.row["reason"]


def test_a_crash_is_a_row_and_what_was_flushed_is_readable(adapter: str, tmp_path: Path) -> None:
    run = run_small(adapter, tmp_path, "profile.memory_limit_gb=0.001")
    assert (run.row["status"], run.row["cause"]) == ("failed", "system")
    assert "out of memory" in run.row["reason"]
    assert run.ledger.table("manifest").num_rows >= 1


def lags(run: SmallRun) -> set[int]:
    """Policy lag of every consumed record, in updates."""
    version = {row["sample_id"]: row["policy_version"] for row in run.ledger.table("rollouts").to_pylist()}
    return {row["policy_version"] - version[row["sample_id"]] for row in run.ledger.table("trained").to_pylist()}


def test_every_track(adapter: str, tmp_path: Path) -> None:
    run = run_small(adapter, tmp_path, "track=fixed_length")
    assert run.row["status"] in {"ok", "not_run"}, run.row["reason"]
    assert check_run(run.folder) == []


def test_several_updates_over_a_batch_are_real_lag(adapter: str, tmp_path: Path) -> None:
    run = run_small(adapter, tmp_path, "task.minibatches=2", "task.inner_epochs=2")
    assert run.row["status"] in {"ok", "not_run"}, run.row["reason"]
    assert check_run(run.folder) == []
    if run.row["status"] == "ok":
        assert lags(run) == {0, 1, 2, 3}


def test_every_other_layout_keeps_its_word(adapter: str, tmp_path: Path) -> None:
    for layout in find_adapter(adapter).spec["layouts"]:
        if layout == "colocated_sync":
            continue
        run = run_small(adapter, tmp_path / layout, f"layout={layout}")
        assert run.row["status"] in {"ok", "not_run"}, run.row["reason"]
        assert check_run(run.folder) == []
        if run.row["status"] == "ok":
            config = next(iter(run.manifest["configs"].values()))["resolved"]
            assert max(lags(run)) <= config["layout"]["lag_bound"]
