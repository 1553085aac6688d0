import sys
from pathlib import Path

import pytest

from harness.errors import UserError
from harness.execute import doctor
from harness.execute.adapter import Adapter
from harness.execute.doctor import Check, diagnose
from harness.execute.environments import COMPLETE, ensure_environment, environments_folder
from harness.execute.uv_process import mute
from tests.execute.small_wheel import MODULE, Shelf

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def adapter(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Adapter:
    """An adapter from outside this checkout, with a small lock and a hook check that speaks through `drift.json`."""
    package = tmp_path / "package" / "small_adapter"
    shelf.lock(package / "locks" / "cpu.txt")
    (package / "__init__.py").touch()
    (package / "driver.py").touch()
    inside = "import pathlib; print(pathlib.Path(__file__).with_name('drift.json').read_text())\n"
    (package / "inside.py").write_text(inside, encoding="utf-8")
    (package / "drift.json").write_text("[]", encoding="utf-8")
    monkeypatch.syspath_prepend(str(package.parent))
    spec = {"python": PYTHON, "version": "1.0", "profiles": {"cpu": {"lock": "locks/cpu.txt"}}}
    found = Adapter("small", "small_adapter", package, spec)
    monkeypatch.setattr(doctor, "find_adapter", lambda name: found)
    return found


def _checks() -> dict[str, Check]:
    return {check.name: check for check in diagnose("small", "cpu")}


def _ensure(adapter: Adapter) -> Path:
    lock = adapter.lock("cpu")
    assert lock
    return ensure_environment(adapter.name, lock, PYTHON, mute).path


def test_the_machine_is_looked_at(adapter: Adapter) -> None:
    checks = _checks()
    assert checks["python"].ok
    assert {"disk of the cache", "disk of the runs", "threads", "load", "lock of the harness"} <= checks.keys()
    assert "GiB free" in checks["disk of the cache"].detail


def test_an_environment_that_is_not_made(adapter: Adapter) -> None:
    check = _checks()["small: environment"]
    assert not check.ok
    assert check.detail.endswith("is not made")
    assert check.mend == "rlaxes env sync adapter=small profile=cpu"


def test_a_half_made_environment(adapter: Adapter) -> None:
    (_ensure(adapter) / COMPLETE).unlink()
    assert _checks()["small: environment"].detail.endswith("is only half-made")


def test_a_whole_environment(adapter: Adapter) -> None:
    _ensure(adapter)
    checks = _checks()
    assert [checks[f"small: {name}"].ok for name in ("environment", "packages", "hooks")] == [True] * 3
    assert checks["small: packages"].detail == "as the lock says"


def test_an_edited_package_and_a_drifted_hook(adapter: Adapter) -> None:
    path = _ensure(adapter)
    module = next(environments_folder().glob(f"{path.name}/lib/python*/site-packages/{MODULE}/__init__.py"))
    module.write_text("VALUE = 3\n", encoding="utf-8")
    (adapter.folder / "drift.json").write_text('["small.thing:Gone is not there"]', encoding="utf-8")
    checks = _checks()
    assert not checks["small: packages"].ok
    assert f"{MODULE}/__init__.py" in checks["small: packages"].detail
    assert f"rlaxes env remove {path.name}" in checks["small: packages"].mend
    assert not checks["small: hooks"].ok
    assert "Gone" in checks["small: hooks"].detail


def test_a_hook_check_that_fails_is_not_a_pass(adapter: Adapter) -> None:
    _ensure(adapter)
    (adapter.folder / "drift.json").unlink()
    check = _checks()["small: hooks"]
    assert not check.ok
    assert "the check itself failed" in check.detail


def test_a_missing_lock_and_an_unknown_profile(adapter: Adapter) -> None:
    lock = adapter.lock("cpu")
    assert lock
    lock.unlink()
    assert not _checks()["small: lock"].ok
    with pytest.raises(UserError, match="no profile nonesuch; there are cpu"):
        diagnose("small", "nonesuch")


def test_a_variant_is_mended_by_the_choice_that_uses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`reference_vllm` of conf/adapter uses the lock `cpu_vllm` of the adapter `reference`."""
    monkeypatch.setenv("RLAXES_CACHE", str(tmp_path))
    checks = {check.name: check for check in diagnose("reference", "cpu")}
    assert checks["reference (cpu_vllm): environment"].mend == "rlaxes env sync adapter=reference_vllm profile=cpu"
    assert checks["reference: environment"].mend == "rlaxes env sync adapter=reference profile=cpu"
