"""The fake loop does what it is told, and what it writes is lawful whatever that is."""

from pathlib import Path
from typing import Any

import pytest

from adapters.fake.driver import driver
from adapters.fake.truth import every
from harness.audit.check import check_cell
from harness.errors import UserError
from harness.execute.cell import Cell
from tests.fakes import CELL_ID, TASK, fake_ledger, figures

CASES: list[dict[str, Any]] = [
    {},
    {"ahead": 2},
    {"drop_every": 3, "stale_every": 5, "error_every": 7, "unknown_every": 2},
    {"left_in_flight": True, "ahead": 1},
    {"published_bytes": 4_000_000, "stage_ms": {"weight_sync": 3.0}},
    {"log_ratios": [1000.0, -1000.0], "logprob_kind": "raw_softmax"},
    {"zero_gradient_every": 2, "degenerate_every": 1},
]
STAGE_MS = {
    "prompt_prep": 1.0,
    "prefill": 4.0,
    "decode": 20.0,
    "verifier": 2.0,
    "batch_assembly": 1.0,
    "forward_backward": 10.0,
    "optimizer_step": 2.0,
    "weight_sync": 0.0,
}


def _told(case: dict[str, Any]) -> dict[str, Any]:
    return case | {"stage_ms": STAGE_MS | case.get("stage_ms", {})}


@pytest.mark.parametrize("task", [{}, {"minibatches": 2, "inner_epochs": 2, "steps": 9}])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_its_ledger_is_lawful(tmp_path: Path, case: dict[str, Any], task: dict[str, Any]) -> None:
    fake_ledger(tmp_path, task, **_told(case))
    assert check_cell(tmp_path / "ledger", CELL_ID, TASK | task, None) == []


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_null_is_explained_and_every_token_accounted_for(tmp_path: Path, case: dict[str, Any]) -> None:
    found = figures(tmp_path, **_told(case))
    assert all(value.reason for value in found.values() if value.value is None)
    assert found["token_closure_gap"].value == 0
    assert found["token_recount_gap"].value == 0


def test_losses(tmp_path: Path) -> None:
    """16 completions a batch, lengths 3, 5, 8, 4; every 4th (length 4) is dropped before training."""
    found = figures(tmp_path, drop_every=4)
    assert found["token_fates[dropped]"].value == 10 * 4 * 4
    assert found["token_fates[trained]"].value == 10 * 4 * 16
    assert found["training_tokens_per_second"].numerator == 8 * 4 * 16


def test_verifier_errors_are_no_zero_rewards(tmp_path: Path) -> None:
    found = figures(tmp_path, error_every=4, degenerate_every=0)
    assert found["infrastructure_error_share"].value == 1 / 4
    assert found["verified_outcomes_per_second"].numerator == 8 * 12
    # rewards 0, 1, 0 are left of 0, 1, 0, 1
    assert found["reward"].value == pytest.approx(1 / 3)
    assert found["faults[verifier_error]"].value == 40
    assert found["groups_per_second"].value == 0
    assert found["degenerate_fraction"].value is None


def test_publications_that_move_bytes(tmp_path: Path) -> None:
    found = figures(tmp_path, published_bytes=3_000_000, stage_ms=STAGE_MS | {"weight_sync": 6.0})
    assert found["stage_seconds_p50[weight_sync]"].value == pytest.approx(0.006)
    # 3 MB at 1 GB/s take 3 ms of the 6
    assert found["headroom_sync"].value == pytest.approx(0.5)
    assert found["t_seq_part_seconds[sync]"].value == pytest.approx(0.006)


def test_fixed_length_gives_every_completion_the_same_length(tmp_path: Path) -> None:
    table = fake_ledger(tmp_path, track="fixed_length").table("rollouts", ["response_tokens", "stop_reason"])
    assert {len(tokens) for tokens in table["response_tokens"].to_pylist()} == {TASK["max_tokens"]}
    assert set(table["stop_reason"].to_pylist()) == {"length"}


@pytest.mark.parametrize(("mode", "error"), [("crash", RuntimeError), ("oom", MemoryError)])
def test_it_goes_wrong_as_told(tmp_path: Path, mode: str, error: type[Exception]) -> None:
    with pytest.raises(error, match="told to"):
        fake_ledger(tmp_path, mode=mode)


def test_an_unknown_mode_is_refused(tmp_path: Path) -> None:
    fake_ledger(tmp_path)
    cell = Cell.read(tmp_path)
    cell.adapter_options["mode"] = "sing"
    with pytest.raises(UserError, match="has to be one of ok, crash, hang, oom, slow"):
        driver.render(cell)


def test_every() -> None:
    assert [number for number in range(9) if every(number, 3)] == [2, 5, 8]
    assert not any(every(number, 0) for number in range(9))
