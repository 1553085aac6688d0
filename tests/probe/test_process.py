"""The process of a cell: how it ends is written down, whichever the adapter."""

import json
from pathlib import Path

import pytest

from harness.contract import compact, read_cell
from harness.errors import SystemFailure, UserError
from harness.probe.hooks import HookDrift
from harness.probe.process import judge, run_process


class OutOfMemoryError(RuntimeError):
    """Of the name that torch gives its own."""


@pytest.mark.parametrize(
    ("error", "kind", "cause"),
    [
        (MemoryError("no more"), "out_of_memory", "system"),
        (OutOfMemoryError("CUDA out of memory"), "out_of_memory", "system"),
        (HookDrift("hook drift: gone"), "hook_drift", "harness"),
        (RuntimeError("ray::worker() HookDrift: hook drift: a:b is gone"), "hook_drift", "harness"),
        (UserError("no such engine"), "settings", "harness"),
        (SystemFailure("it ended without a result"), "system_failure", "system"),
        (RuntimeError("it died"), "exception", "system"),
        (KeyboardInterrupt(), "exception", "system"),
    ],
)
def test_an_exception_has_a_kind_and_a_cause(error: BaseException, kind: str, cause: str) -> None:
    assert judge(error) == (kind, cause)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """An adapter's package, `run.py` as the test says; RLAXES_CELL names a cell in `tmp_path`."""
    name = f"loop_{abs(hash(request.node.name))}"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    (tmp_path / name / "run.py").write_text(request.param, encoding="utf-8")
    (tmp_path / name / "hooks.py").write_text("def hook_drift(): print('loading'); return ['hook drift: x is gone']\n")
    cell = {"run_id": "run/c", "cell_id": "c", "directory": str(tmp_path), "observer": True, "attempt": 0}
    (tmp_path / "cell.json").write_text(json.dumps(cell | {"task": {"steps": 1}}), encoding="utf-8")
    monkeypatch.setenv("RLAXES_CELL", str(tmp_path / "cell.json"))
    monkeypatch.setattr("sys.argv", ["inside"])
    monkeypatch.syspath_prepend(tmp_path)
    return name


@pytest.mark.parametrize("package", ["def run_cell(probe, started, stack): return {'steps': 1}\n"], indirect=True)
def test_a_cell_that_ends_leaves_its_result(package: str, tmp_path: Path) -> None:
    assert run_process(package, 0, "nothing") == 0
    assert json.loads((tmp_path / "result.json").read_text(encoding="utf-8")) == {"steps": 1}


@pytest.mark.parametrize(
    "package", ["import no_such_framework\n", "def run_cell(*_): raise ValueError('x' * 9000)\n"], indirect=True
)
def test_what_goes_wrong_is_in_the_ledger_and_raised(package: str, tmp_path: Path) -> None:
    with pytest.raises((ImportError, ValueError)):
        run_process(package, 0, "nothing")
    compact(tmp_path / "streams", tmp_path / "ledger", "c")
    ledger = read_cell(tmp_path / "ledger", "c")
    (fault,) = ledger.table("faults").to_pylist()
    assert (fault["kind"], fault["cause"], fault["where"]) == ("exception", "system", f"{package}.inside")
    assert len(fault["detail"]) <= 2000
    assert ledger.torn
    assert not (tmp_path / "result.json").exists()


@pytest.mark.parametrize("package", ["raise AssertionError('must not be imported')\n"], indirect=True)
def test_drift_is_the_last_line_of_standard_output(
    package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["inside", "--check-hooks"])
    assert run_process(package, 0, "nothing") == 1
    said = capsys.readouterr()
    assert json.loads(said.out.strip()) == ["hook drift: x is gone"]
    assert "loading" in said.err
