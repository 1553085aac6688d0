"""Figures of recovery, on a cell that died and went on."""

from pathlib import Path

import pytest

from harness.contract import CellLedger
from harness.measure.api import MeasureContext, view_of
from harness.measure.figures.recovery import RecoveryMeasure
from harness.measure.measure import REGISTERED
from harness.measure.restarts import resumes_of
from harness.measure.values import Value
from tests.measure.deaths import COLD, DIED_MS, dead_cell
from tests.measure.loops import TASK, loop_cell


def _recovery(ledger: CellLedger, between_failures: float | None = None) -> dict[str, Value]:
    view = view_of(ledger, MeasureContext(TASK, 1, between_failures=between_failures))
    kinds = [kind for kind in REGISTERED.values() if issubclass(kind, RecoveryMeasure)]
    return {value.name: value for kind in kinds for value in kind().values(view)}


def test_what_the_death_took(tmp_path: Path) -> None:
    found = _recovery(dead_cell(tmp_path))
    assert found["restarts"].value == 1
    assert found["rollouts_lost"].value == 4
    assert found["updates_lost"].value == 1
    assert found["generations_lost"].value == 0
    assert found["processes_replaced"].value == 0
    assert found["policy_version_gap"].value == 0
    assert found["resumed_items[restored]"].value == 3
    assert found["resumed_items[lost]"].value == 0
    # the newest checkpoint is that after step 3, at 299 ms
    assert found["checkpoint_age_at_death_seconds"].value == pytest.approx((DIED_MS - 299) / 1000)
    assert found["restore_seconds"].value == pytest.approx(0.001)
    # step 2 of the second attempt ends at 200 + 450 ms
    assert found["first_good_step_seconds"].value == pytest.approx((650 - DIED_MS) / 1000)


def test_what_keeping_state_costs(tmp_path: Path) -> None:
    found = _recovery(dead_cell(tmp_path), between_failures=100.0)
    assert found["checkpoint_seconds"].value == pytest.approx(0.020)
    assert found["checkpoint_bytes"].value == 600
    assert found["checkpoint_failures"].value == 0
    assert found["checkpoint_interval_seconds"].value == pytest.approx(0.1)
    assert found["checkpoint_overhead"].value == pytest.approx(0.020 / 0.1 + 0.1 / 200)
    assert found["checkpoint_best_interval_seconds"].value == pytest.approx((2 * 0.020 * 100) ** 0.5)


def test_how_often_failures_come_has_to_be_declared(tmp_path: Path) -> None:
    found = _recovery(dead_cell(tmp_path))
    for tag in ("checkpoint_overhead", "checkpoint_best_interval_seconds"):
        assert found[tag].value is None
        assert "not declared" in str(found[tag].reason)


def test_a_cold_optimizer_counts_as_restarted_whatever_the_loop_says(tmp_path: Path) -> None:
    found = _recovery(dead_cell(tmp_path, items=COLD))
    assert found["resumed_items[restored]"].value == 2
    assert found["resumed_items[restarted]"].value == 1


@pytest.mark.parametrize(("version", "gap"), [(2, 0), (0, 2), (5, 3)])
def test_the_version_that_a_restart_goes_on_from(tmp_path: Path, version: int, gap: int) -> None:
    assert _recovery(dead_cell(tmp_path, version=version))["policy_version_gap"].value == gap


def test_what_changed_across_the_restart(tmp_path: Path) -> None:
    updates = {2: {"grad_norm": 3.0}, 3: {"grad_norm": 5.0}}
    found = _recovery(dead_cell(tmp_path, updates=updates, changes={"reward_total": [0.0, 0.0, 0.0, 1.0]}))
    assert found["restart_change[grad_norm]"].value == 4.0
    assert found["restart_change[reward]"].value == pytest.approx(0.25 - 0.75)
    assert found["restart_change[completion_length]"].value == 1.0
    assert found["restart_change[lag]"].value == 0.0
    assert found["restart_change[log_ratio]"].value == 0.0
    assert found["restart_change[loss]"].value is None


def test_a_run_that_began_again_has_nothing_before(tmp_path: Path) -> None:
    ledger = dead_cell(tmp_path, resumed=0, kept=False, version=0, items={})
    found = _recovery(ledger)
    assert not resumes_of(ledger)[0].kept
    assert found["updates_lost"].value == 3
    assert found["resumed_items"].value is None
    assert "began again" in str(found["restart_change"].reason)


def test_a_cell_that_never_died_says_so(tmp_path: Path) -> None:
    found = _recovery(loop_cell(tmp_path))
    assert found["restarts"].value == 0
    silent = {"checkpoint_seconds", "first_good_step_seconds", "policy_version_gap", "restore_seconds", "updates_lost"}
    for tag in silent:
        assert found[tag].value is None
        assert found[tag].reason
