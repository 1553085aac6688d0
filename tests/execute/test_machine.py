"""A machine is told from others without being named."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.execute import machine

GPU = {"name": "NVIDIA H100", "memory_bytes": 80 * 2**30, "uuid": "GPU-1"}


def test_it_is_the_same_each_time_and_names_nothing() -> None:
    assert machine.machine_id() == machine.machine_id() == machine.describe()["id"]
    assert len(machine.machine_id()) == machine.ID_DIGITS
    assert set(machine.machine_id()) <= set("0123456789abcdef")


def test_what_differs_makes_another_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def other(name: str, value: Any) -> str:
        with monkeypatch.context() as changed:
            changed.setattr(machine, name, value)
            return machine.machine_id()

    (tmp_path / "machine-id").write_text("0123\n")
    found = [
        machine.machine_id(),
        other("cpu_model", lambda: "another"),
        other("usable_cores", lambda: 12345),
        other("_seen_gpus", lambda: [GPU]),
        other("_seen_gpus", lambda: [GPU | {"uuid": "GPU-2"}]),
        other("MACHINE_ID", tmp_path / "machine-id"),
        other("MACHINE_ID", tmp_path / "none"),
    ]
    assert len(set(found[:-1])) == len(found) - 1


def test_the_numbers_of_gpus_are_in_no_manifest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_seen_gpus", lambda: [GPU])
    assert "GPU-1" not in json.dumps(machine.describe())
