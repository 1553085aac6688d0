"""Jobs through Hydra's own plug-ins: submitit's local executor for real, Slurm with commands that stand in for it."""

import importlib.util
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from submitit.core.core import Job as SubmititJob

from harness.cluster.job import Job
from harness.cluster.launchers import CONF, Ended, launch, launcher_of
from harness.errors import PrerequisiteError, UserError
from tests.cluster.slurm import stand_in

CALLS = "tests.cluster.calls"


def asked(name: str, **changes: Any) -> dict[str, Any]:
    """An option of `conf/launcher`."""
    return dict(yaml.safe_load((CONF / "launcher" / f"{name}.yaml").read_text(encoding="utf-8"))) | changes


def _launch(folder: Path, jobs: list[Job], settings: dict[str, Any], at_once: int = 2) -> tuple[list[Ended], list[str]]:
    said: list[str] = []
    return launch(jobs, folder, settings, at_once, said.append), said


def test_jobs_give_back_what_they_return_and_one_that_dies_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SubmititJob, "_results_timeout_s", 0)
    jobs = [
        Job("good", f"{CALLS}:double", {"value": 21}),
        Job("killed", f"{CALLS}:die", {}),
        Job("refused", f"{CALLS}:refuse", {}),
        Job("bug", f"{CALLS}:bug", {}),
    ]
    ended, said = _launch(tmp_path / "it's a folder, with =signs", jobs, asked("submitit_local"))
    good, killed, refused, bug = ended
    assert good == Ended("good", 42, None)
    assert refused == Ended("refused", None, "this is not to be done", "UserError")
    assert killed.died is not None
    assert "UncompletedJobError" in killed.died
    assert bug.died is not None
    assert "ZeroDivisionError: by nothing" in bug.died
    assert all("\n" not in str(one.died) for one in ended)
    assert said.count("job good: ended") == 1


def test_a_setting_that_the_plug_in_lacks_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"launcher\.patition=gpu: .* no such setting"):
        launcher_of(asked("submitit_local", patition="gpu"), tmp_path)
    with pytest.raises(UserError, match=r"launcher\.timeout_min=soon"):
        launcher_of(asked("submitit_local", timeout_min="soon"), tmp_path)


def test_slurm_without_slurm_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PrerequisiteError, match="needs the command sbatch"):
        launcher_of(asked("slurm"), tmp_path)


def test_ray_without_its_plug_in_is_one_line(tmp_path: Path) -> None:
    if importlib.util.find_spec("hydra_plugins.hydra_ray_launcher") is None:
        with pytest.raises(PrerequisiteError, match="uv pip install hydra-ray-launcher"):
            launcher_of(asked("ray"), tmp_path)
    else:
        assert type(launcher_of(asked("ray"), tmp_path)).__name__ == "RayLauncher"


def test_what_slurm_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text is submitit's own, as `sbatch` gets it; a stand-in runs it as Slurm would, on this machine."""
    slurm = stand_in(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{slurm}{os.pathsep}{os.environ['PATH']}")
    settings = asked("slurm", partition="gpu", timeout_min=90, gpus_per_node=8, mem_gb=64, setup=["module load cuda"])
    ended, _ = _launch(tmp_path / "jobs", [Job("one", f"{CALLS}:double", {"value": 4})], settings)
    assert ended == [Ended("one", 8, None)]
    (script,) = (slurm / "given").glob("*.sh")
    lines = script.read_text(encoding="utf-8").splitlines()
    for wanted in (
        "partition=gpu",
        "time=90",
        "gpus-per-node=8",
        "mem=64GB",
        "nodes=1",
        "ntasks-per-node=1",
        "exclusive",
    ):
        assert f"#SBATCH --{wanted}" in lines
    assert "module load cuda" in lines
    assert any(line.startswith("srun ") and "submitit.core._submit" in line for line in lines)
    assert not any("None" in line or "null" in line for line in lines)


def test_the_stand_in_is_no_program_of_the_system(tmp_path: Path) -> None:
    for name in ("sbatch", "srun", "sacct"):
        assert (stand_in(tmp_path / "bin") / name).stat().st_mode & stat.S_IXUSR
