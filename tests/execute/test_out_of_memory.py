"""A cell that ran out of memory keeps those from starting that need no less, and no others."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.execute.compose import compose_choices
from harness.execute.out_of_memory import Deaths, needs_no_less
from harness.execute.plan import plan_cells
from harness.execute.session import choices_of, run_session
from harness.execute.verdict import NO_MEMORY


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


def _row(status: str, reason: str | None) -> dict[str, Any]:
    return {"status": status, "reason": reason, "made_of": {"lock": "a", "adapter": "b", "harness": "c"}}


def test_what_outlived_it_lifts_the_ban() -> None:
    (planned,) = plan_cells(compose_choices(["adapter=fake", "repeats=1"]))
    planned = replace(planned, made_of={"lock": "a", "adapter": "b", "harness": "d"})
    larger, smaller = (compose_choices(["adapter=fake", f"task.group_size={size}"])[0].config for size in (16, 4))
    deaths = Deaths()
    deaths.learn("one", _row("failed", f"{NO_MEMORY}MemoryError"), planned.config)
    assert deaths.verdict(planned) is not None
    assert deaths.verdict(replace(planned, made_of={"lock": "another", "adapter": "b"})) is None
    deaths.learn("two", _row("ok", None), smaller)
    assert deaths.verdict(planned) is not None
    deaths.learn("three", _row("ok", None), larger)
    assert deaths.verdict(planned) is None
