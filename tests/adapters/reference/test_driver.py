from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.reference.driver import driver
from adapters.reference.settings import Settings
from harness.execute.adapter import find_adapter
from harness.execute.cell import Cell
from tests.adapters.reference import cells

TASK = {"steps": 10, "prompts_per_batch": 2, "minibatches": 2, "inner_epochs": 2}


def cell(
    folder: Path, engine: str = "transformers", layout: str = "colocated_sync", track: str = "free", **task: Any
) -> Cell:
    content = cells.cell(folder, layout={"name": layout, "lag_bound": 0}, track=track, task=TASK | task)
    content["adapter_options"]["engine"] = engine
    named = {"adapter": "reference", "package": "adapters.reference", "repeat": 0, "model": {"name": "tiny"}}
    return Cell(**content | named)


def test_it_is_found_with_a_lock_for_each_engine() -> None:
    adapter = find_adapter("reference")
    for profile in ("cpu", "cpu_vllm"):
        lock = adapter.lock(profile)
        assert lock is not None
        assert lock.exists()


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"layout": "elsewhere"}, "layout"),
        ({"engine": "sglang"}, "engine"),
        ({"precision": "bfloat16"}, "precision"),
        ({"lr_schedule": "cosine"}, "lr_schedule"),
        ({"loss": "sum"}, "loss"),
        ({"group_size": 1, "std_ddof": 0}, "group of one"),
        ({"name": "arithmetic_two_turn", "track": "fixed_length"}, "none ends"),
        ({"group_size": 2, "std_ddof": 2}, "no standard deviation"),
        ({"engine": "vllm", "temperature": 2.5}, "temperature"),
    ],
)
def test_what_it_cannot_do_is_skipped_by_name(tmp_path: Path, changes: dict[str, Any], word: str) -> None:
    assert driver.skip(cell(tmp_path)) is None
    assert word in (driver.skip(cell(tmp_path, **changes)) or "")


def test_every_setting_and_the_track_have_a_row(tmp_path: Path) -> None:
    asked = cell(tmp_path, track="fixed_length", top_k=10)
    held = {**asked.task, "stops_at_eos": False}
    found = {row.setting: row for row in driver.fidelity(asked, held)}
    assert found.keys() == {*asked.task, "track"}
    assert {row.grade for row in found.values()} == {"exact"}
    assert "do not model" in found["top_k"].note
    assert "end-of-sequence" in found["track"].note


def test_a_setting_that_is_held_otherwise_is_approximated(tmp_path: Path) -> None:
    asked = cell(tmp_path)
    rows = driver.fidelity(asked, {**asked.task, "stops_at_eos": True, "learning_rate": 1e-4})
    assert {row.setting for row in rows if row.grade == "approximated"} == {"learning_rate"}


def test_the_last_batch_may_be_used_in_part(tmp_path: Path) -> None:
    settings = Settings.from_cell({**cell(tmp_path).__dict__})
    assert (settings.batch_size, settings.updates_per_batch, settings.batches) == (8, 4, 3)
    assert replace(settings, steps=8).batches == 2
