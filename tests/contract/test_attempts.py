"""Several attempts at one cell: what a restart takes back lies apart, and no row is lost or there twice."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.contract import (
    ROLLED_BACK,
    CellLedger,
    LedgerWriter,
    compact,
    process_name,
    read_cell,
    split_name,
)
from harness.probe import Probe
from tests.ledgers import CELL_ID, rollout

RESTORED = {"optimizer": {"state": "restored", "saved": "a", "found": "a", "evidence": "moments"}}
State = dict[str, list[int]]


def _cell(folder: Path, attempt: int) -> dict[str, Any]:
    return {"run_id": "run/c", "cell_id": CELL_ID, "directory": str(folder), "attempt": attempt}


def _row(table: str, number: int) -> dict[str, Any]:
    """A row of a table of the history that bears `number`."""
    name = {"sample_id": str(number)}
    moment = {"t_start": number, "t_end": number}
    versions = {"policy_version_before": 0, "policy_version_after": 1}
    counts = {"records": 1, "groups": 1, "policy_tokens": 1, "padded_tokens": 0, "applied": True}
    served = {"kind": "full", "bytes": 1, "replicas": 1, "acknowledged": 1, "ok": True}
    step = {"step": 0, "epoch": 0, "policy_version": 0, "t_step_start": 0, "policy_tokens": 1}
    rows: dict[str, dict[str, Any]] = {
        "rollouts": rollout(0, **name),
        "trained": {**name, **step, "batch_id": "batch-0-mb-0"},
        "updates": {"step": number, "batch_id": "batch-0-mb-0", **moment, **versions, **counts},
        "fates": {**name, "fate": "trained", "policy_tokens": 1, "t": 0},
        "publications": {"published_version": number, "policy_version": 0, **moment, **served},
    }
    return rows[table]


def _number(table: str, row: dict[str, Any]) -> int:
    key = {"updates": "step", "publications": "published_version"}.get(table, "sample_id")
    return int(row[key])


def _write(probe: Probe, table: str, number: int) -> None:
    row = _row(table, number)
    if table == "rollouts":
        probe.accept_rollouts([row])
    elif table == "trained":
        probe.trained([row])
    elif table == "fates":
        probe.fates([row])
    else:
        (probe.update if table == "updates" else probe.publication)(**row)


@dataclass
class Model:
    """What a restart ought to leave: the history at each mark, and the marks."""

    history: State = field(default_factory=lambda: {table: [] for table in ROLLED_BACK})
    written: State = field(default_factory=lambda: {table: [] for table in ROLLED_BACK})
    marks: list[tuple[dict[str, Any], State]] = field(default_factory=list)

    def copy(self) -> State:
        return {table: list(rows) for table, rows in self.history.items()}


_ACTIONS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(ROLLED_BACK)),
    st.tuples(st.sampled_from(["mark", "flush"]), st.just("")),
)
_ATTEMPTS = st.lists(
    st.tuples(st.integers(-1, 5), st.lists(_ACTIONS, max_size=12), st.booleans(), st.booleans()), min_size=1, max_size=5
)


@given(attempts=_ATTEMPTS)
def test_history_and_what_was_taken_back_are_all_that_was_written(
    tmp_path_factory: pytest.TempPathFactory, attempts: list[tuple[int, list[tuple[str, str]], bool, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("attempts")
    model, number = Model(), 0
    for attempt, (restored, actions, speaks, dies) in enumerate(attempts):
        probe = Probe(_cell(folder, attempt))
        if attempt and speaks:
            _restore(probe, model, restored)
        for action, table in actions if speaks or not attempt else []:
            if action == "write":
                number += 1
                _write(probe, table, number)
                model.history[table].append(number)
                model.written[table].append(number)
            elif action == "mark":
                model.marks.append((probe.mark(), model.copy()))
            else:
                probe.flush()
        probe.flush() if dies else probe.close()
    ledger = _sealed(folder)
    for table in ROLLED_BACK:
        kept = [_number(table, row) for row in ledger.table(table).to_pylist()]
        lost = [_number(table, row) for row in ledger.table(f"lost_{table}").to_pylist()]
        assert kept == model.history[table]
        assert Counter(kept + lost) == Counter(model.written[table])


def _restore(probe: Probe, model: Model, choice: int) -> None:
    """Go on from one of the marks, whichever attempt it is of; from none for -1."""
    mark, state = model.marks[choice % len(model.marks)] if model.marks and choice >= 0 else (None, None)
    model.history = {table: list(rows) for table, rows in state.items()} if state else Model().history
    probe.resumed(mark, None if mark is None else "step-1", 0, 0, RESTORED)


def _sealed(folder: Path) -> CellLedger:
    compact(folder / "streams", folder / "ledger", CELL_ID)
    return read_cell(folder / "ledger", CELL_ID)


def test_of_more_than_nine_attempts_the_last_one_speaks(tmp_path: Path) -> None:
    for attempt in range(12):
        probe = Probe(_cell(tmp_path, attempt))
        probe.note("settings", attempt)
        if attempt == 11:
            probe.close()
        else:
            probe.flush()
    ledger = _sealed(tmp_path)
    assert ledger.attempt == 11
    assert ledger.manifest["settings"] == 11
    assert ledger.finished
    assert not ledger.torn
    written = ledger.table("manifest")["process"].to_pylist()
    assert list(dict.fromkeys(written)) == [process_name("main", attempt) for attempt in range(12)]


def test_a_last_attempt_that_died_is_torn_whatever_an_earlier_one_said(tmp_path: Path) -> None:
    Probe(_cell(tmp_path, 0)).close()
    Probe(_cell(tmp_path, 1)).flush()
    ledger = _sealed(tmp_path)
    assert ledger.torn
    assert not ledger.finished


def test_a_process_that_was_replaced_leaves_no_torn_ledger(tmp_path: Path) -> None:
    main = Probe(_cell(tmp_path, 1))
    Probe(_cell(tmp_path, 1), "rollout-0").flush()
    main.process_died("rollout-0", "killed")
    Probe(_cell(tmp_path, 1), "rollout-0.1").close()
    main.close()
    ledger = _sealed(tmp_path)
    assert ledger.current == ["main~1", "rollout-0.1~1"]
    assert not ledger.torn


def test_every_process_says_who_it_is_in_each_attempt(tmp_path: Path) -> None:
    for attempt in range(2):
        probe = Probe(_cell(tmp_path, attempt), "trainer-0")
        assert probe.process == process_name("trainer-0", attempt)
        probe.close()
    assert [path.name for path in (tmp_path / "processes").iterdir()] == ["trainer-0"]
    assert (
        int((tmp_path / "processes" / "trainer-0").read_text())
        == json.loads(_sealed(tmp_path).table("manifest")["value"][0].as_py())["pid"]
    )


def test_a_name_is_split_as_it_was_made() -> None:
    assert split_name(process_name("rollout-0.1", 12)) == ("rollout-0.1", 12)
    assert split_name(process_name("main", 0)) == ("main", 0)
    with pytest.raises(ValueError, match="main~1"):
        process_name("main~1", 1)


def test_nobody_writes_what_only_a_restart_can_take_back(tmp_path: Path) -> None:
    with LedgerWriter(tmp_path, "main", "r") as writer, pytest.raises(ValueError, match="no process writes"):
        writer.write("lost_fates", [_row("fates", 1)])
