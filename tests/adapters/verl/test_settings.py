from pathlib import Path
from typing import Any

import pytest

from adapters.verl.settings import environment, generated_batches, overrides, words
from harness.probe.kept import Kept
from tests.adapters.verl.cells import cpu_cell

ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"


def test_every_default_that_would_change_the_work_is_spelt_out() -> None:
    settings = overrides(cpu_cell())
    assert settings[f"{ACTOR}.clip_ratio_c"] >= 1e3
    assert settings[f"{ACTOR}.loss_agg_mode"] == "token-mean"
    assert settings[f"{ACTOR}.optim.weight_decay"] == 0.0
    assert settings["trainer.resume_mode"] == "disable"
    assert settings["trainer.logger"] == ["file"]
    assert settings[f"{ACTOR}.shuffle"] is settings["data.shuffle"] is False


@pytest.mark.parametrize(("autocast", "precision", "full"), [(False, "float32", True), (True, "float32", False)])
def test_the_forward_pass_is_in_float32_unless_verls_default_is_asked_for(
    autocast: bool, precision: str, full: bool
) -> None:
    settings = overrides(cpu_cell(task={"precision": precision}, options={"autocast": autocast}))
    assert (settings.get(f"+{ACTOR}.fsdp_config.mixed_precision.param_dtype") == "fp32") is full


def test_log_probs_are_recomputed_in_the_micro_batches_that_are_trained_on() -> None:
    settings = overrides(cpu_cell(task={"minibatches": 2, "micro_batches": 4}))
    assert settings[f"{ACTOR}.ppo_micro_batch_size_per_gpu"] == 16 * 8 // 8
    assert settings[f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu"] == 16 * 8 // 8
    assert settings[f"{ACTOR}.ppo_mini_batch_size"] == 8


def test_a_step_of_verls_is_a_generated_batch() -> None:
    task = {"steps": 20, "minibatches": 2, "inner_epochs": 2}
    assert generated_batches(cpu_cell(task=task)["task"]) == 5
    assert overrides(cpu_cell(task=task))["trainer.total_training_steps"] == 5


@pytest.mark.parametrize(("track", "ignored"), [("free", False), ("fixed_length", True)])
def test_a_fixed_length_is_had_by_not_stopping(track: str, ignored: bool) -> None:
    assert overrides(cpu_cell(track=track))[f"{ROLLOUT}.ignore_eos"] is ignored


def test_a_second_attempt_goes_on_from_a_checkpoint_of_its_own_and_a_first_one_from_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Kept("verl/checkpoints/global_step_2", 2, 2, {}, {}, {})
    monkeypatch.setattr("adapters.verl.settings.newest", lambda cell: kept if cell["attempt"] else None)
    options: dict[str, Any] = {"checkpoint": {"every": 2, "keep": 1}}
    first, second = (overrides(cpu_cell(tmp_path, attempt=number, options=options)) for number in (0, 1))
    assert first["trainer.resume_mode"] == "disable"
    assert second["trainer.resume_mode"] == "resume_path"
    assert second["trainer.resume_from_path"] == str(tmp_path / "verl/checkpoints/global_step_2")
    assert second["trainer.save_freq"] == 2


def test_words_are_what_hydra_reads() -> None:
    written = words({"a.b": None, "c": True, "d": "x y", "e": [0.9, 0.999], "f": Path("/p")})
    assert written == ["a.b=null", "c=true", 'd="x y"', "e=[0.9, 0.999]", 'f="/p"']


def test_the_launch_is_the_same_for_every_attempt() -> None:
    """It is rendered once: what differs between attempts, as verl's log, is not among its variables."""
    assert environment(cpu_cell(attempt=0)) == environment(cpu_cell(attempt=1))


def test_what_is_of_the_cpu_is_loaded_on_a_cpu_alone() -> None:
    assert "adapters.verl.cpu.plugin" in environment(cpu_cell())["VERL_USE_EXTERNAL_MODULES"]
    on_gpu = cpu_cell(profile={"name": "one_gpu", "device": "cuda", "devices": 1, "threads": 8})
    assert "cpu" not in environment(on_gpu)["VERL_USE_EXTERNAL_MODULES"]
