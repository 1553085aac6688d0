"""Drills of the loop of known truth: it dies, is started again where its fault says so, and is judged."""

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.console import Console
from typer.testing import CliRunner

from harness.cli import app
from harness.errors import UserError
from harness.execute.compose import compose_choices, options_of, validate
from harness.execute.killer import Kill, Killer, kills_of
from harness.execute.session import choices_of, drill_choices, run_session
from harness.probe.faults import PROCESSES

COMMON = ["adapter=fake", "task.steps=6", "task.warmup_steps=1"]


def test_a_drill_runs_the_undisturbed_cell_beside_each_fault() -> None:
    choices = drill_choices([*COMMON, "fault=trainer_dies,controller_dies"])
    assert [choice.label for choice in choices] == ["fake+controller_dies", "fake", "fake+trainer_dies"]
    assert all(choice.config["adapter"]["checkpoint"]["every"] == 2 for choice in choices)
    assert all(choice.config["repeats"] == 1 for choice in choices)


def test_a_drill_takes_the_users_word_for_what_it_sets_itself() -> None:
    (*_, last) = drill_choices([*COMMON, "fault=trainer_dies", "adapter.checkpoint.every=3", "repeats=2"])
    assert (last.config["adapter"]["checkpoint"]["every"], last.config["repeats"]) == (3, 2)


def test_what_is_said_of_a_fault_is_not_said_of_the_undisturbed_cell() -> None:
    choices = drill_choices([*COMMON, "fault=trainer_dies", "fault.restarts=2"])
    assert [choice.config["fault"].get("restarts") for choice in choices] == [None, 2]
    with pytest.raises(UserError, match="there is no setting fault"):
        drill_choices([*COMMON, "fault=trainer_dies", "fault.restart=2"])


def test_a_drill_needs_a_fault_and_an_adapter_that_can_resume() -> None:
    with pytest.raises(UserError, match="one or several of controller_dies"):
        drill_choices(COMMON)
    config = compose_choices(["adapter=fake", "fault=trainer_dies"])[0].config
    del config["adapter"]["checkpoint"]
    with pytest.raises(UserError, match="adapter fake keeps no checkpoint"):
        validate(config)


@pytest.mark.parametrize("fault", options_of("fault"))
def test_every_fault_says_what_it_does_and_what_may_change(fault: str) -> None:
    config = compose_choices(["adapter=fake", f"fault={fault}"])[0].config["fault"]
    assert config["faults"] or config["kills"]
    assert config["restarts"] >= 1
    assert all(low < high for low, high in config["allowed"].values())


def test_only_a_cell_with_a_fault_is_started_again(tmp_path: Path) -> None:
    words = [*COMMON, "repeats=1", "adapter.mode=crash", f"output={tmp_path}"]
    folder = run_session(choices_of(words, single=False), Console(stderr=True))
    (cell,) = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["cells"]
    assert [attempt["status"] for attempt in cell["attempts"]] == ["failed"]


def test_the_branches_of_the_module_are_told_apart(tmp_path: Path) -> None:
    """Uninterrupted and fully restored have the same history; restored from the weights alone diverges at once."""
    words = [*COMMON, "fault=controller_dies,weights_only", f"output={tmp_path}", "--json"]
    done = CliRunner().invoke(app, ["drill", *words])
    assert done.exit_code == 1, done.output
    report: dict[str, Any] = json.loads(done.stdout)
    full, weights = report["verdicts"]
    assert full["word"] == "continues the same experiment", full["checks"]
    assert full["divergence"]["first"] is None
    assert full["divergence"]["parameters_equal"] is True
    assert [attempt["returncode"] for attempt in full["attempts"]] == [-9, 0]
    assert "killed by signal 9" in full["attempts"][0]["reason"]
    assert "checkpoint restored" in weights["word"]
    assert weights["divergence"]["first"]["step"] == 0
    assert weights["divergence"]["parameters_equal"] is False
    assert report["violations"] == []
    # a drilled cell stands in no comparison
    assert {row["adapter"] for row in report["rows"]} == {"fake"}
    assert [cell["adapter"] for cell in report["cells"]] == ["fake"]


def test_a_queue_that_is_discarded_costs_exactly_what_is_counted(tmp_path: Path) -> None:
    common = [*COMMON, "fault=controller_dies", "adapter.ahead=2", f"output={tmp_path}", "--json"]
    discard = json.loads(CliRunner().invoke(app, ["drill", *common, "adapter.checkpoint.queue=discard"]).stdout)
    keep = json.loads(CliRunner().invoke(app, ["drill", *common]).stdout)
    assert keep["verdicts"][0]["divergence"]["same_samples"] is True
    said = {check["name"]: check for check in discard["verdicts"][0]["checks"]}
    # two batches of 128 completions waited at the checkpoint
    assert said["trained samples accounted for"]["said"].startswith(
        "256 fewer, 256 of them counted as lost; 256 others"
    )
    assert said["trained samples accounted for"]["result"] == "holds"


def test_moments_are_drawn_by_the_seed() -> None:
    wanted = {"process": "*", "unit": "steps", "low": 0, "high": 5}
    drawn = [Kill.drawn(wanted, random.Random(seed)).moment for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert all(0 <= moment <= 5 for moment in drawn)
    with pytest.raises(UserError, match="unit minutes has to be one of seconds, steps"):
        Kill.drawn(wanted | {"unit": "minutes"}, random.Random(0))


def test_a_pid_that_is_not_of_the_cell_is_never_killed(tmp_path: Path) -> None:
    (tmp_path / PROCESSES).mkdir()
    (tmp_path / PROCESSES / "main").write_text(str(psutil.Process().pid), encoding="utf-8")
    said: list[str] = []
    fault = {"kills": [{"process": "*", "unit": "seconds", "low": 0, "high": 0}]}
    killer = Killer(tmp_path, fault, lambda name, words: said.append(name))
    killer.poll([])
    assert said == []


def test_each_of_several_kills_has_a_moment_of_its_own() -> None:
    fault = compose_choices(["fault=random_kill", "fault.times=4", "fault.seed=3"])[0].config["fault"]
    kills = kills_of(fault, random.Random(fault["seed"]))
    assert len({kill.moment for kill in kills}) == fault["restarts"] == 4


def test_a_process_with_two_ledgers_is_one_victim(tmp_path: Path) -> None:
    said, ended = _killed(tmp_path, "*", {"learner": 0, "main": 0})
    assert (said, ended) == (["main"], 1)


def test_nobody_is_killed_twice(tmp_path: Path) -> None:
    assert _killed(tmp_path, "*", {"main": 0}, times=2) == (["main"], 1)


def test_a_process_without_a_ledger_is_found_by_its_own_name(tmp_path: Path) -> None:
    said, ended = _killed(tmp_path, "sleep", {"main": None})
    assert (said, ended) == (["sleep"], 1)


def test_who_keeps_a_ledger_goes_before_who_only_bears_the_name(tmp_path: Path) -> None:
    assert _killed(tmp_path, "*", {"main": None}) == ([], 0)


def _killed(folder: Path, pattern: str, ledgers: dict[str, int | None], times: int = 1) -> tuple[list[str], int]:
    """Who was killed, and how many of one sleeping process; a ledger's process is that one (0), or one that is gone."""
    (folder / PROCESSES).mkdir()
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        for name, held in ledgers.items():
            (folder / PROCESSES / name).write_text("" if held is None else str(sleeper.pid), encoding="utf-8")
        said: list[str] = []
        fault = {"kills": [{"process": pattern, "unit": "seconds", "low": 0, "high": 0, "times": times}]}
        killer = Killer(folder, fault, lambda name, words: said.append(name))
        killer.poll([psutil.Process(sleeper.pid)])
        return said, int(bool(said) and sleeper.wait(10) != 0)
    finally:
        sleeper.kill()
        sleeper.wait()
