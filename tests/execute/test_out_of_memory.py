"""A cell that ran out of memory keeps those from starting that need no less, and no others."""

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.execute.compose import compose_choices
from harness.execute.out_of_memory import needs_no_less
from harness.execute.session import choices_of, run_session


def _config(*words: str) -> dict[str, Any]:
    (choice,) = compose_choices(["adapter=reference", *words])
    return choice.config


@pytest.mark.parametrize(
    ("words", "stopped"),
    [
        ([], True),
        (["seed=3"], True),
        (["repeats=9", "task.warmup_steps=4", "profile.time_limit_s=5"], True),
        (["task.group_size=16"], True),
        (["task.group_size=16", "task.max_tokens=16", "model.layers=4"], True),
        (["task.group_size=4"], False),
        (["task.group_size=4", "task.max_tokens=999"], False),
        (["task.micro_batches=2"], False),
        (["model.hidden=64"], False),
        (["model=smollm2"], False),
        (["profile.memory_limit_gb=12"], True),
        (["profile.memory_limit_gb=17"], False),
        (["task.gradient_checkpointing=true"], False),
        (["layout=disaggregated_sync"], False),
        (["track=fixed_length"], False),
    ],
)
def test_what_needs_no_less(words: list[str], stopped: bool) -> None:
    assert needs_no_less(_config(*words), _config()) is stopped


def _run(output: Path, *words: str, **asked: Any) -> tuple[str, list[dict[str, Any]]]:
    given = ["adapter=fake", "adapter.mode=oom", "task.steps=4", "task.warmup_steps=0", f"output={output}", *words]
    folder = run_session(choices_of(given, single=False), Console(stderr=True), **asked)
    cells: list[dict[str, Any]] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["cells"]
    return folder.name, cells


@pytest.mark.usefixtures("instant")
def test_what_died_is_not_started_again_in_this_run_or_the_next(tmp_path: Path) -> None:
    run_id, (first, second) = _run(tmp_path, "repeats=2")
    assert (first["status"], first["cause"]) == ("failed", "system")
    assert (second["status"], second["cause"], second["foreign_cores"]) == ("not_run", "system", None)
    assert f"{first['cell_id']}, of its kind and no larger, ran out of memory" in second["reason"]
    _, (larger,) = _run(tmp_path, "repeats=1", "task.group_size=16")
    assert larger["status"] == "not_run"
    assert f"{first['cell_id']} of run {run_id}" in larger["reason"]
    _, (smaller,) = _run(tmp_path, "repeats=1", "task.group_size=4")
    assert smaller["status"] == "failed"
    _, redone = _run(tmp_path, "repeats=2", redo=True)
    assert [cell["status"] for cell in redone] == ["failed", "not_run"]
