"""The module's three branches [12.5.3]: uninterrupted and fully restored are one experiment, event by event and bit for
bit; with the weights alone it is another. Colocated, in one process."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from adapters.reference.trainer import Trainer
from harness.errors import SystemFailure
from tests.adapters.reference.in_env.cells import attempt, bundle, cell, rows, sealed, varied_rewards

__all__ = ["bundle", "varied_rewards"]
TASK = {"steps": 8, "minibatches": 2}
TIMES = {"t", "t_queued", "t_generate_start", "t_first_token", "t_generate_end", "t_verify_start", "t_verify_end"}
APART = TIMES | {"process", "flush", "trace_id", "published_version", "t_step_start", "t_start", "t_end"}
"""Columns in which two runs of one experiment may differ: when, by which attempt, and under which publication."""
EVENTS = ("rollouts", "trained", "updates", "fates")


def checkpointed(bundle: Path, folder: Path, **changes: Any) -> dict[str, Any]:
    options = {"checkpoint": {"every": 1, "keep": 3} | changes.pop("checkpoint", {})}
    return cell(bundle, folder, options=options, **TASK | changes.pop("task", {})) | changes


def events(found: Any) -> dict[str, list[dict[str, Any]]]:
    return {
        table: [{name: value for name, value in row.items() if name not in APART} for row in rows(found, table)]
        for table in EVENTS
    }


def dies(
    at: int, point: str = "trainer.after_checkpoint", role: str = "trainer", action: str = "raise"
) -> dict[str, Any]:
    return {"name": "check", "restarts": 1, "faults": [{"point": point, "role": role, "at": at, "action": action}]}


def resumed(bundle: Path, folder: Path, at: int = 2, **changes: Any) -> tuple[dict[str, Any], Any]:
    """A run that dies after its `at`-th checkpoint and goes on as attempt 1."""
    content = checkpointed(bundle, folder, fault=dies(at), **changes)
    with pytest.raises(SystemFailure, match=r"trainer\.after_checkpoint"):
        attempt(content)
    return attempt(content | {"attempt": 1}), sealed(content)


def notes(found: Any, key: str) -> list[Any]:
    return [json.loads(row["value"]) for row in rows(found, "manifest") if row["key"] == key]


@pytest.mark.parametrize("background", [False, True])
def test_a_full_restore_goes_on_bit_for_bit(bundle: Path, tmp_path: Path, background: bool) -> None:
    whole = attempt(plain := checkpointed(bundle, tmp_path / "whole"))
    again, found = resumed(bundle, tmp_path / "cut", checkpoint={"background": background})
    assert again["final_parameter_sha256"] == whole["final_parameter_sha256"]
    assert again["final_loss"] == whole["final_loss"]
    assert events(found) == events(sealed(plain))
    (note,) = notes(found, "resumed:1")
    assert {item["state"] for item in note["restored"].values()} == {"restored"}
    assert len(note["restored"]) == 14
    assert all(item["saved"] == item["found"] for item in note["restored"].values())
    assert (note["checkpoint"], note["step"], note["policy_version"]) == ("checkpoints/step-4", 4, 4)


@pytest.mark.parametrize("background", [False, True])
def test_a_resumed_ledger_is_lawful(bundle: Path, tmp_path: Path, background: bool) -> None:
    _, found = resumed(bundle, tmp_path, checkpoint={"background": background})
    saved = rows(found, "checkpoints")
    assert [(row["step"], row["policy_version"], row["path"], row["ok"]) for row in saved] == [
        (step, step, f"checkpoints/step-{step}", True) for step in (2, 4, 6, 8)
    ]
    assert all(len(json.loads(row["items"])) == 14 and row["bytes"] > 0 for row in saved)
    spans = [span for span in rows(found, "spans") if span["stage"] in ("checkpoint", "restore")]
    places = [(span["stage"], span["step"]) for span in spans]
    # Written in the background, the death comes after the loop has gone on to the next one.
    assert [place for place in places if place != ("checkpoint", 6)] == [
        ("checkpoint", 2),
        ("checkpoint", 4),
        ("restore", 4),
        ("checkpoint", 8),
    ]
    published = [(row["published_version"], row["policy_version"]) for row in rows(found, "publications")]
    assert published == [(0, 0), (1, 2), (2, 4), (3, 4), (4, 6), (5, 8)]


def test_weights_alone_are_another_experiment(bundle: Path, tmp_path: Path) -> None:
    whole = attempt(plain := checkpointed(bundle, tmp_path / "whole"))
    again, found = resumed(bundle, tmp_path / "cut", checkpoint={"restore": "weights"})
    assert again["final_parameter_sha256"] != whole["final_parameter_sha256"]
    one, other = events(found)["rollouts"], events(sealed(plain))["rollouts"]
    batch = 16
    assert one[: 2 * batch] == other[: 2 * batch]
    assert one[2 * batch]["prompt_id"] == one[0]["prompt_id"] != other[2 * batch]["prompt_id"]
    (note,) = notes(found, "resumed:1")
    states = {name: item["state"] for name, item in note["restored"].items()}
    assert {name for name, state in states.items() if state == "restarted"} == {
        "optimizer",
        "rng",
        "dataset_cursor",
        "prompt_scheduler",
    }
    assert states["parameters"] == states["step_and_version"] == "restored"


def test_a_cold_optimizer_alone_diverges_at_the_next_update(bundle: Path, tmp_path: Path) -> None:
    """The data is the same at first: what differs is what the moments had seen."""
    whole = attempt(plain := checkpointed(bundle, tmp_path / "whole", task={"prompts_per_batch": 12, "steps": 4}))
    again, found = resumed(
        bundle, tmp_path / "cut", at=1, checkpoint={"restore": "weights"}, task={"prompts_per_batch": 12, "steps": 4}
    )
    assert again["final_parameter_sha256"] != whole["final_parameter_sha256"]
    one, other = events(found), events(sealed(plain))
    assert one["rollouts"] == other["rollouts"]
    assert one["updates"][:3] == other["updates"][:3]
    assert one["updates"][3]["loss"] != other["updates"][3]["loss"]


def test_a_process_that_is_killed_while_it_writes_goes_on_from_the_one_before(bundle: Path, tmp_path: Path) -> None:
    whole = attempt(checkpointed(bundle, tmp_path / "whole", task={"minibatches": 1}))
    size = sum(file.stat().st_size for file in (tmp_path / "whole" / "checkpoints" / "step-8").glob("[tr]*"))
    fault = dies(at=3 * size - 5000, point="checkpoint.write", action="kill")
    content = checkpointed(bundle, tmp_path / "cut", fault=fault, task={"minibatches": 1})
    assert in_its_own_process(content).returncode == -signal.SIGKILL
    assert (tmp_path / "cut" / "checkpoints" / "step-3.partial").exists()
    again = attempt(content | {"attempt": 1})
    assert notes(found := sealed(content), "resumed:1")[0]["step"] == 2
    assert [row["step"] for row in rows(found, "lost_updates")] == [2]
    assert again["steps"] == whole["steps"]


def test_a_full_disk_costs_the_checkpoint_and_not_the_run(bundle: Path, tmp_path: Path) -> None:
    fault = dies(at=100_000, point="checkpoint.write", action="enospc")
    content = checkpointed(bundle, tmp_path, fault=fault)
    attempt(content)
    found = sealed(content)
    saved = [(row["step"], row["ok"]) for row in rows(found, "checkpoints")]
    assert saved == [(2, False), (4, True), (6, True), (8, True)]
    (fault_row,) = rows(found, "faults")
    assert (fault_row["kind"], fault_row["cause"]) == ("checkpoint_failed", "system")
    assert "No space left" in fault_row["detail"]


def test_a_checkpoint_that_the_disk_spoiled_is_refused_for_the_one_before(bundle: Path, tmp_path: Path) -> None:
    content = checkpointed(bundle, tmp_path, fault=dies(3))
    with pytest.raises(SystemFailure):
        attempt(content)
    spoiled = tmp_path / "checkpoints" / "step-6" / "trainer.safetensors"
    spoiled.write_bytes(spoiled.read_bytes()[:-1] + b"?")
    attempt(content | {"attempt": 1})
    found = sealed(content)
    assert notes(found, "resumed:1")[0]["checkpoint"] == "checkpoints/step-4"
    assert [(row["kind"], row["detail"]) for row in rows(found, "faults")] == [
        ("checkpoint_refused", "step-6: trainer.safetensors is not as it was written")
    ]


def test_with_no_checkpoint_a_restart_begins_again(bundle: Path, tmp_path: Path) -> None:
    whole = attempt(checkpointed(bundle, tmp_path / "whole"))
    content = checkpointed(
        bundle, tmp_path / "cut", fault=dies(3, "controller.step", "controller"), checkpoint={"every": 0}
    )
    with pytest.raises(SystemFailure):
        attempt(content)
    again = attempt(content | {"attempt": 1})
    assert again["final_parameter_sha256"] == whole["final_parameter_sha256"]
    found = sealed(content)
    assert notes(found, "resumed:1")[0]["mark"] is None
    assert len(rows(found, "lost_rollouts")) == 3 * 16


def test_a_checkpoint_of_another_experiment_is_refused(bundle: Path, tmp_path: Path) -> None:
    content = checkpointed(bundle, tmp_path, fault=dies(2))
    with pytest.raises(SystemFailure):
        attempt(content)
    content["task"] = content["task"] | {"temperature": 0.5}
    with pytest.raises(SystemFailure, match="another experiment: it differs in decoding"):
        attempt(content | {"attempt": 1})


def test_a_cold_optimizer_does_not_pass_for_a_restored_one(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = checkpointed(bundle, tmp_path, fault=dies(2))
    with pytest.raises(SystemFailure):
        attempt(content)
    load = Trainer.load_full_state

    def cold(self: Trainer, state: dict[str, Any]) -> None:
        load(self, {name: tensor for name, tensor in state.items() if not name.startswith("exp_avg")})

    monkeypatch.setattr(Trainer, "load_full_state", cold)
    with pytest.raises(SystemFailure, match="what was restored is not what was saved: optimizer"):
        attempt(content | {"attempt": 1})


def in_its_own_process(content: dict[str, Any]) -> subprocess.CompletedProcess[bytes]:
    file = Path(content["directory"]) / "cell.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    command = [sys.executable, "-m", "adapters.reference.inside"]
    return subprocess.run(command, env=os.environ | {"RLAXES_CELL": str(file)}, capture_output=True, check=False)
