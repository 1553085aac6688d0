"""The A/A test comes first, stops a plan on a noisy machine, and is never done again once it was found fine."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.errors import CannotTell, SystemFailure
from harness.execute.compose import compose_choices
from harness.execute.null_plan import plan_null
from harness.execute.session import choices_of, run_session

FINE = {"noise": 0.01, "margin": {"step_seconds": 0.004}, "stopped": None, "failed": None}
NONE = FINE | {"noise": None, "stopped": "it has 0 pairs", "failed": "pairs", "max_noise": 0.1}
NOISY = FINE | {"max_noise": 0.1} | {"noise": 0.3, "stopped": "the same thing varies by 30 %", "failed": "noise"}


def _plan(*words: str) -> list[str]:
    return [cell.cell_id for cell in plan_null(compose_choices(list(words)))]


def test_it_runs_the_reference_against_itself_in_turns() -> None:
    ids = _plan("adapter=fake,reference,trl", "null_test.pairs=3")
    arms = ["a", "b", "b", "a", "a", "b"]
    assert ids == [f"null-{arm}.colocated_sync.free.r{number // 2}" for number, arm in enumerate(arms)]
    (first, *_) = plan_null(compose_choices(["adapter=fake,reference,trl"]))
    assert (first.system, first.label, first.twin) == ("reference", "null-a", first.cell_id)


def test_without_a_reference_it_takes_the_first_column_that_can_run() -> None:
    words = ["adapter=fake", "layout=colocated_async,colocated_sync"]
    assert {cell.config["layout"]["name"] for cell in plan_null(compose_choices(words))} == {"colocated_sync"}


def test_there_is_one_where_two_columns_are_compared_or_where_it_is_asked_for() -> None:
    assert _plan("adapter=fake") == []
    assert len(_plan("adapter=fake", "track=free,fixed_length")) == 10
    assert _plan("adapter=fake", "track=free,fixed_length", "null_test.pairs=0") == []
    assert len(_plan("adapter=fake", "null_test.pairs=3")) == 6
    assert _plan("adapter=fake", "layout=colocated_async", "null_test.pairs=3") == []


class _Judge:
    """Says what it is told to, in turn."""

    def __init__(self, *says: dict[str, Any]) -> None:
        self.says, self.asked = list(says), 0

    def __call__(self, run: Path, manifest: dict[str, Any]) -> dict[str, Any]:
        self.asked += 1
        assert [row["cell_id"] for row in manifest["null_cells"]] == manifest["null_test"]["cells"]
        return self.says.pop(0)


def _words(output: Path, *words: str) -> list[str]:
    small = ["adapter=fake", "repeats=1", "task.steps=2", "task.warmup_steps=0", "null_test.pairs=3"]
    return [*small, f"output={output}", *words]


def _run(words: Sequence[str], judge: _Judge, **asked: Any) -> tuple[Path, dict[str, Any]]:
    folder = run_session(choices_of(words, single=False), Console(stderr=True), judge_null=judge, **asked)
    return folder, json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


@pytest.mark.usefixtures("instant")
def test_a_noisy_machine_stops_the_plan_and_the_same_command_goes_on(tmp_path: Path) -> None:
    words = _words(tmp_path)
    with pytest.raises(CannotTell, match=r"the same thing varies by 30 %\. .* keeps what was measured"):
        _run(words, _Judge(NOISY))
    (folder,) = tmp_path.iterdir()
    stopped = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert (stopped["cells"], stopped["finished"], len(stopped["null_cells"])) == ([], None, 6)
    assert stopped["null_test"]["noise"] == 0.3

    judge = _Judge(NOISY, FINE)
    again, manifest = _run(words, judge)
    assert (again, judge.asked) == (folder, 2)
    assert manifest["null_test"] | FINE == manifest["null_test"]
    assert (manifest["null_test"]["pairs"], manifest["null_test"]["adapter"]) == (3, "fake")
    # what was measured on the noisy machine is kept, and what counts is listed in the order in which it ran
    assert [row["cell_id"] for row in manifest["redone"]] == stopped["null_test"]["cells"]
    assert manifest["start_order"] == [*manifest["null_test"]["cells"], "fake.colocated_sync.free.r0"]

    # one that was disturbed stops nothing, and is measured anew when the same command goes on
    judged = manifest["null_test"] | {"failed": "other processes used 1.8 cores"}
    (folder / "manifest.json").write_text(json.dumps(manifest | {"finished": None, "null_test": judged}))
    judge = _Judge(judged, judged)
    _, manifest = _run(words, judge)
    assert (judge.asked, len(manifest["redone"]), manifest["finished"] is None) == (2, 12, False)
    manifest["null_test"] |= FINE

    # one that was found fine is neither run nor judged again
    (folder / "manifest.json").write_text(json.dumps(manifest | {"finished": None}), encoding="utf-8")
    again, resumed = _run(words, _Judge())
    assert (again, resumed["null_cells"]) == (folder, manifest["null_cells"])


@pytest.mark.usefixtures("instant")
def test_one_that_could_not_be_run_says_why(tmp_path: Path) -> None:
    words = _words(tmp_path, "adapter.mode=crash")
    with pytest.raises(SystemFailure, match=r"null-a.colocated_sync.free.r0 failed: RuntimeError: told to crash"):
        _run(words, _Judge(NONE))


def test_cells_that_are_added_do_not_bring_another(tmp_path: Path, instant: list[str]) -> None:
    folder, before = _run(_words(tmp_path), _Judge(FINE))
    _, after = _run(_words(tmp_path, "track=fixed_length"), _Judge(), into=folder)
    assert after["null_cells"] == before["null_cells"]
    assert instant[7:] == ["fake.colocated_sync.fixed_length.r0"]
