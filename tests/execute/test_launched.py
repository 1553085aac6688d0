"""Plans whose parts run as jobs of submitit's local executor, with the loop of known truth."""

import json
import pkgutil
import re
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.console import Console
from submitit.core.core import Job as SubmititJob

from harness.audit import check_run
from harness.cluster.job import Job
from harness.cluster.launchers import Ended
from harness.commands.null_test import judge_null
from harness.compare.places import placed
from harness.errors import CannotTell, PrerequisiteError, RlaxesError, UserError
from harness.execute import launched, machine
from harness.execute import parts as parts_module
from harness.execute.compose import compose_choices
from harness.execute.launched import run_parts
from harness.execute.machine import machine_id
from harness.execute.parts import Part, parts_of
from harness.execute.prepare import Prepared
from harness.execute.run_folder import PartFolder, RunFolder, lock_part, open_run
from harness.execute.session import _keep_machine, run_session
from harness.report.build import build_report

SMALL = ["adapter=fake", "task.steps=4", "task.warmup_steps=1", "null_test.pairs=0"]
LOCAL = [*SMALL, "launcher=submitit_local"]
QUIET = Console(stderr=True)


def _manifest(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "manifest.json").read_text(encoding="utf-8")))


def test_a_run_by_a_job_is_the_run_that_it_would_be_here(tmp_path: Path) -> None:
    there = run_session(compose_choices([*LOCAL, "repeats=1", f"output={tmp_path / 'there'}"]), QUIET)
    here = run_session(compose_choices([*SMALL, "repeats=1", f"output={tmp_path / 'here'}"]), QUIET)
    first, second = _manifest(there), _manifest(here)
    assert set(second) <= set(first)
    assert [row["status"] for row in first["cells"]] == ["ok"]
    assert [row["key"] for row in first["cells"]] == [row["key"] for row in second["cells"]]
    assert {row["machine"] for row in first["cells"]} == set(first["machines"]) == {machine_id()}
    assert first["plan_hash"] == second["plan_hash"]
    assert first["finished"]
    assert check_run(there) == []


def test_a_launcher_that_cannot_be_used_leaves_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PrerequisiteError, match="sbatch"):
        run_session(compose_choices([*SMALL, "launcher=slurm", f"output={tmp_path / 'runs'}"]), QUIET)
    assert not (tmp_path / "runs").exists()


def test_each_part_of_a_split_has_a_reference_of_its_own() -> None:
    choices = compose_choices(["adapter=openrlhf,reference,trl,verl", "repeats=2", "null_test.pairs=3"])
    parts = parts_of(choices, "adapter")
    assert [part.name for part in parts] == ["openrlhf", "trl", "verl"]
    order = [cell.cell_id.split(".")[0] for cell in parts[1].cells]
    assert order == ["reference~trl", "trl", "trl", "reference~trl"]
    arms = [cell.cell_id.split(".")[0] for cell in parts[1].null_cells]
    assert arms == ["null-a~trl", "null-b~trl", "null-b~trl", "null-a~trl", "null-a~trl", "null-b~trl"]
    ids = [cell.cell_id for part in parts for cell in part.cells]
    assert len(set(ids)) == len(ids)
    whole = {cell.key for part in parts_of(choices, "none") for cell in part.cells}
    assert {cell.key for part in parts for cell in part.cells} == whole
    data = json.loads(json.dumps(parts[1].as_data()))
    assert Part.from_data(data) == parts[1]


def test_a_split_needs_what_holds_it_together() -> None:
    with pytest.raises(UserError, match="adapter=reference,trl,verl"):
        parts_of(compose_choices(["adapter=trl,verl"]), "adapter")
    with pytest.raises(UserError, match=r"launcher\.split=steps"):
        parts_of(compose_choices(["adapter=trl"]), "steps")


def test_a_job_that_dies_is_a_row_and_the_same_command_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SubmititJob, "_results_timeout_s", 0)
    words = [*LOCAL, "repeats=3", "adapter.mode=slow", "adapter.slow_s=0.3", f"output={tmp_path}"]
    ender = threading.Thread(target=_end_after_first_cell, args=(tmp_path,))
    ender.start()
    folder = run_session(compose_choices(words), QUIET)
    ender.join()
    died = _manifest(folder)
    assert died["finished"] is None
    states = [(row["status"], row["cause"]) for row in died["cells"]]
    assert states[0] == ("ok", None)
    assert set(states[1:]) <= {("ok", None), ("failed", "infrastructure"), ("not_run", "infrastructure")}
    assert states[-1][1] == "infrastructure"
    assert "its job died" in died["cells"][-1]["reason"]
    assert {row["machine"] for row in died["cells"]} == {machine_id()}
    assert run_session(compose_choices(words), QUIET) == folder
    whole = _manifest(folder)
    assert [row["status"] for row in whole["cells"]] == ["ok"] * 3
    assert whole["cells"][0] == died["cells"][0]
    assert whole["finished"]
    assert check_run(folder) == []


def _end_after_first_cell(output: Path) -> None:
    """End the job's process, as a scheduler does that wants its machine back."""
    for _ in range(600):
        time.sleep(0.05)
        if not any(output.glob("*/cells/*.r0/done.json")):
            continue
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            if "submitit.core._submit" in words and any(str(output) in word for word in words):
                process.terminate()
                return


def _in_this_process(jobs: Sequence[Job], *_: Any) -> list[Ended]:
    """What a launcher does, without its processes."""
    ended = []
    for job in jobs:
        try:
            pkgutil.resolve_name(job.call)(**job.given)
            ended.append(Ended(job.name, None, None))
        except RlaxesError as error:
            ended.append(Ended(job.name, None, str(error)))
    return ended


def _two_parts(output: Path, of_second: str) -> tuple[RunFolder, list[Part], dict[str, Any]]:
    words = [*SMALL, "repeats=1"]
    other = compose_choices([*words, of_second])
    parts = [Part("one", compose_choices(words), split=True), Part("two", other, split=True)]
    run = open_run(output, [cell for part in parts for cell in part.cells])
    return run, parts, compose_choices(LOCAL)[0].config["launcher"]


def test_parts_share_a_run_folder_and_no_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same cells twice, as those of the reference are in every part of a split; both jobs met one machine."""
    monkeypatch.setattr(launched, "launch", _in_this_process)
    monkeypatch.setattr(parts_module, "REFERENCE", "fake")
    run, parts, asked = _two_parts(tmp_path, "track=free")
    run_parts(run, parts, asked, QUIET, judge=None, redo=False)
    run.release()
    manifest = _manifest(run.path)
    ids = ["fake~one.colocated_sync.free.r0", "fake~two.colocated_sync.free.r0"]
    assert [(row["cell_id"], row["part"], row["status"]) for row in manifest["cells"]] == [
        (ids[0], "one", "ok"),
        (ids[1], "two", "ok"),
    ]
    assert manifest["start_order"] == ids
    assert set(manifest["configs"]) == {name.removesuffix(".r0") for name in ids}
    assert manifest["null_tests"] == {"one": None, "two": None}
    assert manifest["finished"]
    assert check_run(run.path) == []
    labels = [f"fake on {machine_id()}, part {part}" for part in ("one", "two")]
    assert [adapter for adapter, _ in build_report(run.path).columns("free")] == labels


def test_a_part_whose_machine_is_too_noisy_stops_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stops_the_second(jobs: Sequence[Job], *_: Any) -> list[Ended]:
        ended = _in_this_process(jobs[:1])
        part = PartFolder.open(run.path, "two")
        part.manifest["null_test"] = {"stopped": "it is too noisy"}
        part.save()
        part.release()
        return [*ended, Ended("two", None, "stopped before the comparison: it is too noisy", "CannotTell")]

    monkeypatch.setattr(launched, "launch", stops_the_second)
    run, parts, asked = _two_parts(tmp_path, "track=fixed_length")
    with pytest.raises(CannotTell, match="part two: stopped before the comparison: it is too noisy"):
        run_parts(run, parts, asked, QUIET, judge=judge_null, redo=False)
    run.release()
    manifest = _manifest(run.path)
    assert [row["part"] for row in manifest["cells"]] == ["one"]
    assert manifest["null_tests"]["two"]["stopped"]
    assert manifest["finished"] is None


def test_another_rlaxes_on_the_machine_of_a_job_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(run: Any, part: Part, given: Any) -> Any:
        job = whole(run, part, given)
        job.given["keys"] = ["another"]
        return job

    whole = launched._job
    monkeypatch.setattr(launched, "_job", other)
    monkeypatch.setattr(launched, "launch", _in_this_process)
    folder = run_session(compose_choices([*LOCAL, "repeats=1", f"output={tmp_path}"]), QUIET)
    (row,) = _manifest(folder)["cells"]
    assert (row["status"], row["cause"], row["machine"]) == ("not_run", "infrastructure", None)
    assert "is not the one that the run was planned with" in row["reason"]


def test_a_job_of_an_earlier_command_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launched, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(launched, "launch", _in_this_process)
    choices = compose_choices([*LOCAL, "repeats=1", f"output={tmp_path}"])
    run = open_run(tmp_path, parts_of(choices, "none")[0].cells)
    run.release()
    held = lock_part(run.path, "all")
    assert held is not None
    threading.Timer(0.5, held.close).start()
    started = time.monotonic()
    folder = run_session(choices, QUIET)
    assert time.monotonic() - started > 0.4
    assert folder == run.path
    assert _manifest(folder)["finished"]


def test_the_page_shows_settings_that_there_are() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "launch.md").read_text(encoding="utf-8")
    shown = re.findall(r"^rlaxes compare (.*)$", page, re.MULTILINE)
    assert len(shown) == 3
    for words in shown:
        choices = compose_choices(words.split())
        assert parts_of(choices, choices[0].config["launcher"]["split"])


def test_a_run_that_goes_on_on_another_machine_says_which_cell_ran_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*SMALL, "repeats=2", f"output={tmp_path}"]
    monkeypatch.setattr(machine, "machine_id", lambda: "aaaa0000")
    folder = run_session(compose_choices(words), QUIET)
    (folder / "cells" / "fake.colocated_sync.free.r1" / "done.json").unlink()
    (folder / "manifest.json").write_text(json.dumps(_manifest(folder) | {"finished": None}), encoding="utf-8")
    monkeypatch.setattr(machine, "machine_id", lambda: "bbbb0000")
    assert run_session(compose_choices(words), QUIET) == folder
    manifest = _manifest(folder)
    assert set(manifest["machines"]) == {"aaaa0000", "bbbb0000"}
    assert [row["adapter"] for row in placed(manifest["cells"])] == ["fake on aaaa0000", "fake on bbbb0000"]


def test_a_machine_keeps_the_limits_that_were_first_measured_on_it() -> None:
    manifest: dict[str, Any] = {"roofline": {"of": "before there were ids"}}
    for name, measured in (("a", 1), ("a", 2), ("b", 3), ("a", 4)):
        manifest["machine"] = {"id": name}
        _keep_machine(manifest, Prepared(roofline={"of": measured}))
    assert {name: said["roofline"]["of"] for name, said in manifest["machines"].items()} == {
        "a": "before there were ids",
        "b": 3,
    }
    assert manifest["roofline"] == {"of": "before there were ids"}
