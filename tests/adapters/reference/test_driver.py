from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.reference.driver import driver
from adapters.reference.settings import Settings
from harness.execute.adapter import find_adapter
from harness.execute.cell import Cell

TASK: dict[str, Any] = {
    "name": "arithmetic",
    "steps": 10,
    "warmup_steps": 1,
    "prompts_per_batch": 2,
    "group_size": 4,
    "max_tokens": 5,
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "minibatches": 2,
    "micro_batches": 1,
    "inner_epochs": 2,
    "learning_rate": 1e-3,
    "adam_beta1": 0.9,
    "adam_beta2": 0.999,
    "adam_eps": 1e-8,
    "weight_decay": 0.0,
    "max_grad_norm": 1.0,
    "lr_schedule": "constant",
    "clip_low": 0.2,
    "clip_high": 0.2,
    "loss": "token_mean",
    "advantage_std": "group",
    "std_ddof": 1,
    "advantage_eps": 1e-4,
    "kl_beta": 0.0,
    "precision": "float32",
    "gradient_checkpointing": False,
    "verifier_timeout_s": 5.0,
    "mask_truncated": False,
}


def cell(
    folder: Path, engine: str = "transformers", layout: str = "colocated_sync", track: str = "free", **task: Any
) -> Cell:
    return Cell(
        run_id="r",
        cell_id="c",
        adapter="reference",
        package="adapters.reference",
        layout={"name": layout},
        track=track,
        repeat=0,
        seed=1,
        observer=True,
        bundle=str(folder),
        directory=str(folder),
        profile={"name": "cpu", "device": "cpu", "threads": 2},
        model={"name": "tiny"},
        adapter_options={"engine": engine, "verify_every": 10},
        task=TASK | task,
    )


def test_it_is_found_with_a_lock_for_each_engine() -> None:
    adapter = find_adapter("reference")
    for profile in ("cpu", "cpu_vllm"):
        lock = adapter.lock(profile)
        assert lock is not None
        assert lock.exists()


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"layout": "disaggregated_sync"}, "layout"),
        ({"engine": "sglang"}, "engine"),
        ({"precision": "bfloat16"}, "precision"),
        ({"lr_schedule": "cosine"}, "lr_schedule"),
        ({"loss": "sum"}, "loss"),
        ({"group_size": 1, "std_ddof": 0}, "group of one"),
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
