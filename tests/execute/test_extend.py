"""Cells are added to a run, and failed ones are run again: what was measured stays, and what differs is named."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.audit import check_run
from harness.contract import read_cell
from harness.errors import UserError
from harness.execute.extend import choices_in
from harness.execute.run_folder import hold_run
from harness.execute.session import choices_of, run_session

SMALL = ["adapter=fake", "task.steps=2", "task.warmup_steps=0"]
COLUMN = "fake.colocated_sync.free"


def _words(output: Path, *words: str) -> list[str]:
    return [*SMALL, f"output={output}", *words]


def _run(output: Path, *words: str, **asked: Any) -> tuple[Path, dict[str, Any]]:
    choices = choices_of(_words(output, *words), single=False)
    folder = run_session(choices, Console(stderr=True), **asked)
    return folder, _manifest(folder)


def _manifest(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return content


def _ids(manifest: dict[str, Any]) -> list[str]:
    return [cell["cell_id"] for cell in manifest["cells"]]


def test_repeats_and_columns_are_added_and_nothing_is_done_again(tmp_path: Path) -> None:
    folder, before = _run(tmp_path, "repeats=1")
    # a word that is no setting of a cell asks for what the run has
    more = choices_in(folder, ["repeats=2", f"output={tmp_path}"])
    assert run_session(more, Console(stderr=True), into=folder) == folder
    _, after = _run(tmp_path, "repeats=1", "track=fixed_length", into=folder)
    assert _ids(after) == [f"{COLUMN}.r0", f"{COLUMN}.r1", "fake.colocated_sync.fixed_length.r0"]
    assert after["start_order"] == _ids(after)
    assert after["cells"][0] == before["cells"][0]
    assert [added["cells"] for added in after["additions"]] == [[one] for one in _ids(after)[1:]]
    assert after["finished"]
    assert set(after["configs"]) == {COLUMN, "fake.colocated_sync.fixed_length"}
    assert check_run(folder) == []


@pytest.mark.usefixtures("instant")
def test_what_cannot_stand_beside_a_run_is_refused_in_one_line(tmp_path: Path) -> None:
    folder, _ = _run(tmp_path, "repeats=1")
    refused = {
        "seed=18": rf"{COLUMN}.r0 is in run {folder.name} with another seed \(17 there, 18 here\)",
        "adapter.ahead=1": r"another adapter.ahead \(0 there, 1 here\)",
        "task.max_tokens=4": r"another task.max_tokens \(8 there, 4 here\)",
    }
    for word, message in refused.items():
        with pytest.raises(UserError, match=message):
            _run(tmp_path, "repeats=1", word, into=folder)
    with pytest.raises(UserError, match=rf"run {folder.name} has {COLUMN} with another task.max_tokens \(8 there, 4"):
        _run(tmp_path, "repeats=1", "track=fixed_length", "task.max_tokens=4", into=folder)
    assert _manifest(folder)["finished"]


@pytest.mark.usefixtures("instant")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"finished": None}, "has not ended"),
        ({"machine": {"id": "0ther"}}, "is of another machine"),
        ({"plan_hash": None}, "was not measured by rlaxes"),
        ({"cells": [{"part": "trl"}]}, "was measured in parts"),
    ],
)
def test_not_every_run_takes_cells(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    folder, manifest = _run(tmp_path, "repeats=1")
    (folder / "manifest.json").write_text(json.dumps(manifest | change), encoding="utf-8")
    with pytest.raises(UserError, match=message):
        _run(tmp_path, "repeats=2", into=folder)


@pytest.mark.usefixtures("instant")
def test_a_change_of_the_code_that_runs_cells_is_named(tmp_path: Path) -> None:
    folder, manifest = _run(tmp_path, "repeats=1")
    for inside, words in (("lock", "lock of its environment"), ("harness", "code of rlaxes that runs a cell")):
        row = manifest["cells"][0]
        other = row | {"key": "0ther", "made_of": row["made_of"] | {inside: "0ther"}}
        (folder / "manifest.json").write_text(json.dumps(manifest | {"cells": [other]}), encoding="utf-8")
        with pytest.raises(UserError, match=f"with another {words}: start a run of its own"):
            _run(tmp_path, "repeats=1", into=folder)


@pytest.mark.usefixtures("instant")
def test_a_run_that_another_works_on_is_left_alone(tmp_path: Path) -> None:
    folder, _ = _run(tmp_path, "repeats=1")
    held = hold_run(folder)
    with pytest.raises(UserError, match="in use by another rlaxes"):
        _run(tmp_path, "repeats=2", into=folder)
    held.release()


def test_failed_cells_are_run_again_and_their_rows_are_kept(tmp_path: Path) -> None:
    """Of a real cell, since what it left has to stay readable."""
    words = ("repeats=1", "adapter.mode=crash", "task.steps=4")
    folder, before = _run(tmp_path, *words)
    again, after = _run(tmp_path, *words, redo=True)
    assert again == folder
    (former,) = after["redone"]
    assert former == before["cells"][0] | {"kept": f"{COLUMN}.r0.redone1"}
    assert after["cells"][0]["started"] >= former["started"]
    aside = folder / "cells" / former["kept"] / "ledger"
    assert read_cell(aside, f"{COLUMN}.r0").table("updates").num_rows == 2
    assert check_run(folder) == []


def test_a_run_knows_itself_what_to_redo(tmp_path: Path, instant: list[str]) -> None:
    folder, _ = _run(tmp_path, "repeats=1", "adapter.mode=crash")
    for number in (1, 2):
        run_session(choices_in(folder, []), Console(stderr=True), into=folder, redo=True)
        assert [row["kept"] for row in _manifest(folder)["redone"]][number - 1 :] == [f"{COLUMN}.r0.redone{number}"]
    assert instant == [f"{COLUMN}.r0"] * 3


def test_cells_that_ended_well_are_never_redone(tmp_path: Path, instant: list[str]) -> None:
    folder, before = _run(tmp_path, "repeats=1")
    _, after = _run(tmp_path, "repeats=1", redo=True)
    assert after["cells"] == before["cells"]
    assert "redone" not in after
    assert instant == [f"{COLUMN}.r0"]
    with pytest.raises(UserError, match="nothing to redo; name the run: --into RUN"):
        _run(tmp_path, "repeats=1", "seed=3", redo=True)
    assert [*tmp_path.iterdir()] == [folder]


def test_a_cell_that_never_began_leaves_nothing_to_keep(tmp_path: Path, instant: list[str]) -> None:
    """As where the job of a launcher died before it."""
    words = ("repeats=1", "adapter.mode=crash")
    folder, _ = _run(tmp_path, *words)
    shutil.rmtree(folder / "cells" / f"{COLUMN}.r0")
    _, after = _run(tmp_path, *words, redo=True)
    assert [row["kept"] for row in after["redone"]] == [None]
    assert len(instant) == 2
