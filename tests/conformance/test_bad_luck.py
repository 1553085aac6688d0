"""What becomes of a cell that hangs, dies, or dies and is started again."""

from pathlib import Path

import pytest

from harness.audit import check_run
from tests.conformance.cells import PLAIN_STEPS, KitRun, covering, planned, run_kit

DEATH = "trainer.after_checkpoint"
DIED_IN = 1
"""The optimizer step whose checkpoint is the second: a framework that logs a step after saving it never logged it."""


def _run(adapter: str, folder: Path, *words: str) -> KitRun:
    return run_kit(adapter, folder, [*covering(adapter)[0].words, *words])


def test_a_hang_is_a_row_with_its_last_sign_of_life(adapter: str, tmp_path: Path) -> None:
    run = _run(adapter, tmp_path, "profile.time_limit_s=0.05")
    assert (run.row["status"], run.row["cause"]) == ("failed", "system")
    assert "hung: no end within" in run.row["reason"]
    assert "last sign: " in run.row["reason"]
    assert not run.survivors, f"still there: {', '.join(run.survivors)}"


def test_a_crash_is_a_row_and_what_was_flushed_is_readable(adapter: str, tmp_path: Path) -> None:
    run = _run(adapter, tmp_path, "profile.memory_limit_gb=0.001")
    assert (run.row["status"], run.row["cause"]) == ("failed", "system")
    assert "out of memory" in run.row["reason"]
    assert check_run(run.folder) == []
    assert run.ledger.table("manifest").num_rows >= 1
    assert not run.survivors, f"still there: {', '.join(run.survivors)}"


def test_a_restart_goes_on_and_keeps_what_was_logged(adapter: str, plain: KitRun, tmp_path: Path) -> None:
    """The trainer dies after its second checkpoint of four. One log for each attempt: a framework that opens its file
    anew would lose the figures of the steps before."""
    spec = planned(adapter, covering(adapter)[0].words).adapter.spec
    if DEATH not in spec.get("drills", {}).get("points", {}):
        pytest.skip(f"{adapter} declares no point {DEATH}")
    run = _run(adapter, tmp_path, "fault=trainer_dies", "adapter.checkpoint.every=1")
    assert run.row["status"] == "ok", f"{run.row['cause']}: {run.row['reason']}"
    assert len(run.row["attempts"]) == 2, f"{len(run.row['attempts'])} attempts"
    found = check_run(run.folder)
    assert not found, f"{len(found)} violations, the first: {found[0]}"
    assert [update["step"] for update in run.rows("updates")] == list(range(PLAIN_STEPS))
    kept = _logged(run)
    lost = {key: steps for key, steps in _logged(plain).items() if not steps - {DIED_IN} <= kept.get(key, set())}
    assert not lost, f"its log of the first attempt is gone: {next(iter(lost.items()))}"
    assert not run.survivors, f"still there: {', '.join(run.survivors)}"


def _logged(run: KitRun) -> dict[str, set[int | None]]:
    """The steps of which the framework reported each of its own figures."""
    steps: dict[str, set[int | None]] = {}
    for row in run.rows("native"):
        steps.setdefault(row["key"], set()).add(row["step"])
    return steps
