"""An adapter in a package of its own, installed beside rlaxes: found, made an environment, run for real, compared."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from uv import find_uv_bin

from harness.execute.adapter import Adapter, _read
from harness.execute.locks import adapter_jobs
from harness.execute.pip_settings import uv_command, uv_environment
from harness.execute.requirement_lock import inputs_digest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = Path(__file__).parent / "project"
NAME = "plain_loop"


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the package is installed into, as into site-packages; built without a network."""
    folder = tmp_path_factory.mktemp("third_party")
    source = shutil.copytree(PROJECT, folder / "source")
    words = ["--quiet", "--target", str(folder / "target"), "--python", sys.executable]
    command = uv_command(find_uv_bin(), ["pip", "install", *words, "--no-deps", "--no-build-isolation", str(source)])
    subprocess.run(command, env=uv_environment(), cwd=folder, check=True, timeout=300)
    return folder / "target"


def _run(installed: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a Python module as a user with the package would."""
    env = os.environ | {"PYTHONPATH": str(installed)}
    done = subprocess.run([sys.executable, "-m", *command], env=env, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done


def _rlaxes(installed: Path, *words: str) -> dict[str, Any]:
    code = "from harness.cli import app; import sys; app(sys.argv[1:])"
    env = os.environ | {"PYTHONPATH": str(installed)}
    command = [sys.executable, "-c", code, *words, "--json"]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return dict(json.loads(done.stdout))


def test_its_lock_is_compiled_from_what_it_asks_for() -> None:
    adapter: Adapter = _read(NAME, PROJECT / NAME)
    (job,) = adapter_jobs(adapter)
    assert inputs_digest(job.target.read_text(encoding="utf-8")) == job.digest, "rlaxes env lock plain_loop"


def test_the_conformance_kit_holds_it(installed: Path) -> None:
    said = _run(installed, "pytest", "-q", "-p", "no:cacheprovider", "tests/conformance", "--adapter", NAME).stdout
    assert " passed" in said
    assert " failed" not in said


def test_the_doctor_looks_at_it(installed: Path) -> None:
    checks = {check["name"]: check for check in _rlaxes(installed, "doctor", NAME)["checks"]}
    for what in ("lock", "environment", "packages", "hooks"):
        assert checks[f"{NAME}: {what}"]["ok"], checks[f"{NAME}: {what}"]


def test_its_options_are_settings(installed: Path) -> None:
    (config,) = _rlaxes(installed, "run", f"adapter={NAME}", "adapter.log_every=2", "--cfg").values()
    assert config["adapter"] == {"name": NAME, "log_every": 2}


def test_it_is_compared_and_reported(installed: Path, tmp_path: Path) -> None:
    words = ["repeats=1", "model=tiny", "task.steps=4", "task.warmup_steps=1", "task.prompts_per_batch=2"]
    words += ["null_test.pairs=0"]
    report = _rlaxes(installed, "compare", f"adapter=fake,{NAME}", f"output={tmp_path}", *words)
    assert {cell["adapter"]: cell["status"] for cell in report["cells"]} == {"fake": "ok", NAME: "ok"}
