import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import adapters.trl.driver as module
from adapters.trl.driver import driver
from harness.execute.adapter import Fidelity
from harness.execute.cell import Cell
from tests.adapters.trl.cells import TASK, cell_of

VLLM = {"engine": "vllm"}


def cell(tmp_path: Path, **settings: Any) -> Cell:
    return Cell(**cell_of(tmp_path, **settings))


def held(**changes: Any) -> dict[str, Any]:
    """What TRL's objects hold after a run of the test's task."""
    own = {"trl.loss_type": "dapo", "trl.weight_dtype": "float32", "trl.optimizer": "AdamW", "trl.optim": "adamw_torch"}
    settings = {key: value for key, value in TASK.items() if key != "problems"}
    return settings | own | {"trl.min_new_tokens": None} | changes


def row(rows: list[Fidelity], setting: str) -> Fidelity:
    return next(found for found in rows if found.setting == setting)


def test_it_renders_one_process_and_what_trl_is_told(tmp_path: Path) -> None:
    launch = driver.render(cell(tmp_path))
    assert launch.argv == ["python", "-m", "adapters.trl.inside"]
    assert launch.env["HF_HUB_OFFLINE"] == "1"
    arguments = json.loads(launch.files["grpo_arguments.json"])
    assert (arguments["max_steps"], arguments["use_cpu"], arguments["shuffle_dataset"]) == (3, True, False)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, None),
        ({"track": "fixed_length"}, None),
        ({"layout": "colocated_async"}, "no layout colocated_async"),
        ({"options": {"engine": "sglang"}}, "no engine sglang"),
        ({"group_size": 1}, "groups of one"),
        ({"name": "arithmetic_two_turn"}, "task arithmetic_two_turn has several turns"),
        ({"options": VLLM}, "needs a GPU"),
        ({"layout": "disaggregated_sync"}, "needs a GPU"),
        ({"options": VLLM, "profile": "one_gpu"}, None),
        ({"options": VLLM | {"sleep_mode": True}, "profile": "one_gpu"}, None),
        ({"layout": "disaggregated_sync", "profile": "one_gpu"}, "needs two GPUs"),
        ({"layout": "disaggregated_sync", "profile": "multi_gpu"}, None),
    ],
    ids=str,
)
def test_it_skips_what_cannot_be_held(settings: dict[str, Any], reason: str | None, tmp_path: Path) -> None:
    said = driver.skip(cell(tmp_path, **settings))
    assert said is None if reason is None else said is not None and reason in said


@pytest.mark.parametrize("sleep", [False, True])
def test_vllm_in_the_process_is_rendered(sleep: bool, tmp_path: Path) -> None:
    files = driver.render(cell(tmp_path, profile="one_gpu", options=VLLM | {"sleep_mode": sleep})).files
    arguments = json.loads(files["grpo_arguments.json"])
    assert (arguments["vllm_mode"], arguments["vllm_enable_sleep_mode"]) == ("colocate", sleep)
    assert arguments["use_cpu"] is False


def test_every_task_setting_has_a_row(tmp_path: Path) -> None:
    rows = driver.fidelity(cell(tmp_path), held())
    assert {found.setting for found in rows} == {*TASK, "track"}
    assert {found.grade for found in rows} == {"exact"}


@pytest.mark.parametrize(
    ("settings", "changes", "setting", "grade", "note"),
    [
        ({"advantage_eps": 1e-6}, {}, "advantage_eps", "approximated", "1e-4"),
        (
            {"advantage_eps": 1e-6, "advantage_std": "none"},
            {"advantage_std": "none"},
            "advantage_eps",
            "exact",
            "not used",
        ),
        ({"std_ddof": 0}, {}, "std_ddof", "unsupported", "n - 1"),
        (
            {"minibatches": 2, "micro_batches": 2},
            {"minibatches": 2, "micro_batches": 2},
            "loss",
            "approximated",
            "dapo",
        ),
        ({"top_k": 10}, {"top_k": 10}, "top_k", "exact", "do not model"),
        ({"weight_decay": 0.1}, {"weight_decay": 0.1}, "weight_decay", "approximated", "biases"),
        ({"precision": "bfloat16"}, {"precision": "bfloat16"}, "precision", "approximated", "autocast"),
        ({"learning_rate": 1e-3}, {}, "learning_rate", "approximated", "another value"),
        ({"track": "fixed_length"}, {"trl.min_new_tokens": 6}, "track", "approximated", "EOS is suppressed"),
        ({"track": "fixed_length"}, {}, "track", "unsupported", ""),
    ],
    ids=str,
)
def test_it_grades_by_what_was_held(
    settings: dict[str, Any], changes: dict[str, Any], setting: str, grade: str, note: str, tmp_path: Path
) -> None:
    found = row(driver.fidelity(cell(tmp_path, **settings), held(**changes)), setting)
    assert found.grade == grade
    assert note in found.note


def test_a_setting_that_trl_does_not_hold_is_unsupported(tmp_path: Path) -> None:
    incomplete = held()
    del incomplete["clip_high"]
    found = row(driver.fidelity(cell(tmp_path), incomplete), "clip_high")
    assert (found.in_force, found.grade) == (None, "unsupported")


def test_its_layouts_and_figures_are_declared() -> None:
    spec = yaml.safe_load((Path(module.__file__).parent / "adapter.yaml").read_text(encoding="utf-8"))
    assert tuple(spec["layouts"]) == module.LAYOUTS
    assert all({"key", "definition", "measure", "differs_because"} <= set(figure) for figure in spec["native"])
