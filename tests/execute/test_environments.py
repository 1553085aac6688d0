import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.errors import PrerequisiteError, UserError
from harness.execute import environments
from harness.execute.environment_diff import diff_environment
from harness.execute.environments import (
    COMPLETE,
    Environment,
    ensure_environment,
    environments_folder,
    list_environments,
    remove_environment,
    torch_backend,
)
from harness.execute.uv_process import explain, mute
from tests.execute.small_wheel import MODULE, NAME, VERSION, Shelf

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def lock(shelf: Shelf, tmp_path: Path) -> Path:
    return shelf.lock(tmp_path / "small" / "locks" / "cpu.txt")


@pytest.fixture
def made(lock: Path) -> Environment:
    return ensure_environment("small", lock, PYTHON, mute)


def _runs(environment: Environment, code: str) -> str:
    return subprocess.run([environment.python, "-I", "-c", code], capture_output=True, text=True, check=True).stdout


def test_it_holds_exactly_what_the_lock_lists(made: Environment) -> None:
    assert _runs(made, f"import {MODULE}; print({MODULE}.VALUE)") == "1\n"
    listing = "import importlib.metadata as m; print([d.name for d in m.distributions()])"
    assert _runs(made, listing) == f"['{NAME}']\n"
    assert re.fullmatch(r"small-cpu-[0-9a-f]{12}", made.name)
    assert made.packages == 1
    assert made.size_bytes > 0
    assert list_environments() == [made]
    assert diff_environment(made) == []


def test_it_says_what_it_does(lock: Path) -> None:
    said: list[str] = []
    ensure_environment("small", lock, PYTHON, said.append)
    text = "\n".join(said)
    for word in ("making the environment small-cpu-", "1 packages of small/cpu.txt", "Installed 1 package", "is ready"):
        assert word in text


def test_what_is_there_is_not_made_again(made: Environment, lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "run_uv", None)
    assert ensure_environment("small", lock, PYTHON, mute) == made


def test_another_lock_is_another_environment(made: Environment, shelf: Shelf, lock: Path) -> None:
    other = ensure_environment("small", shelf.lock(lock, head="# other\n"), PYTHON, mute)
    assert other.name != made.name
    assert {environment.name for environment in list_environments()} == {made.name, other.name}


@pytest.mark.parametrize("damage", ["no marker", "torn marker", "no python"])
def test_a_half_made_one_is_made_anew(made: Environment, lock: Path, damage: str) -> None:
    marker = made.path / COMPLETE
    if damage == "no python":
        made.python.unlink()
        made.python.symlink_to("/nowhere/python")
    elif damage == "torn marker":
        marker.write_text(marker.read_text(encoding="utf-8")[:20], encoding="utf-8")
    else:
        marker.unlink()
    (made.path / "left_over").touch()
    assert list_environments() == []
    again = ensure_environment("small", lock, PYTHON, mute)
    assert not (again.path / "left_over").exists()
    assert _runs(again, f"import {MODULE}") == ""


def test_a_wrong_hash_installs_nothing(shelf: Shelf, lock: Path) -> None:
    shelf.lock(lock, sha256="0" * 64)
    with pytest.raises(PrerequisiteError, match="not the one that the lock names") as caught:
        ensure_environment("small", lock, PYTHON, mute)
    assert "\n" not in str(caught.value)
    assert list_environments() == []


def test_no_network_is_one_clear_line(lock: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    monkeypatch.delenv("UV_OFFLINE")
    for name in ("UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    said: list[str] = []
    with pytest.raises(PrerequisiteError, match="no package index answers: mend the network") as caught:
        ensure_environment("small", lock, PYTHON, said.append)
    assert "\n" not in str(caught.value)
    assert any("downloaded before" in line for line in said)


def test_no_such_python_and_no_such_lock(lock: Path, tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="that Python is not installed"):
        ensure_environment("small", lock, "3.99", mute)
    with pytest.raises(UserError, match="compile it with `make locks`"):
        ensure_environment("small", tmp_path / "none.txt", PYTHON, mute)


def test_a_full_disk_and_a_missing_compiler_are_named(tmp_path: Path) -> None:
    full = "error: Failed to install: x.whl\n  Caused by: No space left on device (os error 28)\n"
    assert "is full" in explain(["pip", "sync"], full, tmp_path)
    source = "error: Failed to build `x==1`\n  cause: The build backend failed\n  error: No such file: 'gcc'\n"
    assert "install a C compiler" in explain(["pip", "sync"], source, tmp_path)
    assert explain(["pip", "sync"], "warning: w\nerror: odd\n  cause: thing", tmp_path) == (
        "uv pip sync failed: error: odd cause: thing"
    )


def test_a_cache_that_cannot_be_written_is_named(lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLAXES_CACHE", str(tmp_path / "file"))
    (tmp_path / "file").touch()
    with pytest.raises(PrerequisiteError, match=r"cannot write in .*set RLAXES_CACHE"):
        ensure_environment("small", lock, PYTHON, mute)


MAKE = f"""
import sys
from pathlib import Path
from harness.execute.environments import ensure_environment
print(ensure_environment("small", Path(sys.argv[1]), {PYTHON!r}, print).name, flush=True)
"""


def _start(code: str, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", code, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_of_many_at_once_one_makes_it(lock: Path) -> None:
    started = [_start(MAKE, str(lock)) for _ in range(4)]
    outputs = [process.communicate(timeout=120)[0] for process in started]
    assert [process.returncode for process in started] == [0] * 4
    assert len({output.splitlines()[-1] for output in outputs}) == 1
    assert sum("making the environment" in output for output in outputs) == 1


SLOW_UV = f"""
import sys
from pathlib import Path
from harness.execute import uv_process
uv_process.find_uv_bin = lambda: sys.argv[2]
from harness.execute.environments import ensure_environment
ensure_environment("small", Path(sys.argv[1]), {PYTHON!r}, print)
"""


def test_a_uv_that_outlives_its_killed_harness_is_waited_for(lock: Path, tmp_path: Path) -> None:
    slow = tmp_path / "slow-uv"
    slow.write_text(f"#!/bin/sh\ntouch {tmp_path}/began\nsleep 2\ntouch {tmp_path}/ended\n", encoding="utf-8")
    slow.chmod(0o755)
    harness = _start(SLOW_UV, str(lock), str(slow))
    while not (tmp_path / "began").exists():
        time.sleep(0.02)
    harness.send_signal(signal.SIGKILL)
    harness.communicate()
    said: list[str] = []
    ensure_environment("small", lock, PYTHON, said.append)
    assert "waiting for another rlaxes" in said[0]
    assert (tmp_path / "ended").exists()


@pytest.mark.parametrize("name", ["..", ".", "", "nonesuch", "../env"])
def test_only_an_environment_can_be_removed(made: Environment, name: str) -> None:
    with pytest.raises(UserError, match=f"there are: {made.name}"):
        remove_environment(name)
    assert list_environments() == [made]


def test_removed_is_gone(made: Environment) -> None:
    remove_environment(made.name)
    assert list_environments() == []
    assert [entry for entry in environments_folder().iterdir() if entry.is_dir()] == []


def test_what_differs_from_the_lock_is_named(made: Environment) -> None:
    packages = next((made.path / "lib").glob("python*/site-packages"))
    (packages / MODULE / "__init__.py").write_text("VALUE = 2\n", encoding="utf-8")
    other = packages / "intruder-2.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: intruder\nVersion: 2.0\n", encoding="utf-8")
    assert diff_environment(made) == [
        "intruder 2.0 is not in the lock",
        f"{NAME}: 1 files differ from what was installed ({MODULE}/__init__.py)",
    ]
    (packages / MODULE / "data.bin").unlink()
    assert f"{NAME}: 2 files differ" in diff_environment(made)[1]
    info = packages / f"{MODULE}-{VERSION}.dist-info"
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1.1\n", encoding="utf-8")
    assert f"{NAME} is 1.1 where the lock says {VERSION}" in diff_environment(made)
    shutil.rmtree(info)
    assert f"{NAME} {VERSION} is missing" in diff_environment(made)
    made.python.unlink()
    assert "its Python does not run" in diff_environment(made)[0]


def test_a_cpu_torch_comes_from_where_pip_finds_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_FIND_LINKS", f"https://example.invalid/x,{tmp_path}")
    text = "torch==2.13.0+cpu \\\n    --hash=sha256:00\n"
    assert torch_backend(text, "cpu", "3.11") == ["--torch-backend", "cpu"]
    (tmp_path / "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl").touch()
    assert torch_backend(text, "cpu_vllm", "3.11") == []
    assert torch_backend(text, "cpu", "3.12") == ["--torch-backend", "cpu"]
    assert torch_backend(text, "one_gpu", "3.12") == []
    assert torch_backend("numpy==2.4.6\n", "cpu", "3.11") == []
