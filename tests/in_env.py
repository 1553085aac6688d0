"""Runs checks inside an adapter's own environment, which has the framework and no pytest.

pytest is pure Python: the harness's own copy is linked into a folder that goes on the environment's PYTHONPATH, beside
links to `harness`, `adapters` and `tests`. The files that run there are called `check_*.py`, so that the harness's own
pytest does not collect them; a test beside them calls `run_checks` on each.
"""

import importlib.util
import json
import os
import subprocess
from pathlib import Path

import pytest

from harness.audit.check import check_cell
from harness.execute.adapter import find_adapter
from harness.execute.environments import find_environment

ROOT = Path(__file__).resolve().parents[1]
PURE_PYTHON = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
SECONDS = 900
KEPT = "RLAXES_KEPT_LEDGERS"


def interpreter(adapter: str, profile: str) -> Path:
    """The interpreter of the adapter's environment for that lock, or of the one that `RLAXES_TEST_PYTHON_<profile>`
    names; the calling test is skipped where there is neither (`rlaxes env sync` makes it)."""
    if own := os.environ.get(f"RLAXES_TEST_PYTHON_{adapter}_{profile}"):
        return Path(own)
    found = find_adapter(adapter)
    lock = found.lock(profile)
    environment = find_environment(adapter, lock, found.spec["python"]) if lock else None
    if environment is None:
        pytest.skip(f"the environment {profile} of {adapter} is not made")
    return environment.python


def run_checks(python: Path, file: Path, folder: Path) -> None:
    """Run one file of checks with `python`; fails with their output, and on a ledger that they left in the folder that
    `RLAXES_KEPT_LEDGERS` names and on which `rlaxes check` does not say what it was to say. `folder` is an empty one to
    work in."""
    links, kept = folder / "links", folder / "kept"
    links.mkdir()
    for name in PURE_PYTHON:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        source = Path(spec.origin)
        source = source.parent if source.name == "__init__.py" else source
        (links / source.name).symlink_to(source)
    for package in ("harness", "adapters", "tests"):
        (links / package).symlink_to(ROOT / package)
    # Threads that wait without spinning: beside other work on the same cores, checks are then many times faster.
    quiet = {"HF_HUB_OFFLINE": "1", "OMP_WAIT_POLICY": "PASSIVE", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [
            str(python),
            "-m",
            "pytest",
            "-q",
            f"--confcutdir={file.parent}",
            "-p",
            "no:cacheprovider",
            "-o",
            "python_files=check_*.py",
            str(file),
        ],
        cwd=ROOT,
        env=os.environ | quiet | {"PYTHONPATH": str(links), KEPT: str(kept)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout[-8000:]
    for seal in sorted(kept.rglob("*.seal.json")):
        asked = json.loads((seal.parent / "asked.json").read_text(encoding="utf-8"))
        found = check_cell(seal.parent, seal.name.removesuffix(".seal.json"), asked["task"], None)
        broken = {violation.rule for violation in found}
        if asked["breaks"] is None:
            assert not found, f"{seal.parent.name}: {found[:3]}"
        else:
            assert asked["breaks"] in broken, f"{seal.parent.name} was to break {asked['breaks']}, not {broken}"
