"""A bundle is built once, found again, and never found half-built. The makers here write a bundle without a model."""

import fcntl
import os
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.errors import PrerequisiteError, SystemFailure, UserError
from harness.task import build as build_module
from harness.task.build import build_bundle, bundle_key
from harness.task.bundle import Bundle
from harness.task.worker_pipe import SOURCE_ROOT
from tests.task.bundles import ARITHMETIC

MODEL = {"name": "tiny"}
WHOLE = """
    import shutil
    shutil.rmtree(job["out"])
    write_bundle(Path(job["out"]), job["task"])
"""
SILENT = lambda line: None  # noqa: E731


def maker(folder: Path, body: str = WHOLE) -> Path:
    """An interpreter that, whatever it is told to run, notes its start in `runs` and does `body` with the job."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    head = f"""\
        #!{sys.executable}
        import json, os, sys, time
        from pathlib import Path
        sys.path.insert(0, {str(SOURCE_ROOT)!r})
        from tests.task.bundles import write_bundle
        job = json.loads(Path(sys.argv[-1]).read_text())
        with open({str(folder / "runs")!r}, "a") as runs: runs.write(str(os.getpid()) + "\\n")
    """
    python.write_text(textwrap.dedent(head) + textwrap.dedent(body))
    python.chmod(0o755)
    return python


def runs(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "runs").read_text().split()] if (folder / "runs").exists() else []


def build(tmp_path: Path, python: Path, task: dict[str, Any] = ARITHMETIC, model: dict[str, Any] = MODEL) -> Bundle:
    return build_bundle(task, model, tmp_path / "cache", python, SILENT)


def visible(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "cache" / "bundles").iterdir() if path.suffix != ".lock"]


def test_the_second_time_nothing_is_made(tmp_path: Path) -> None:
    python = maker(tmp_path)
    first = build(tmp_path, python, {**ARITHMETIC, "steps": 20, "learning_rate": 1e-3})
    second = build(tmp_path, python, {**ARITHMETIC, "steps": 50, "learning_rate": 1e-4})
    assert first.path == second.path
    assert len(runs(tmp_path)) == 1
    assert visible(tmp_path) == [first.path]


def test_what_decides_the_content_decides_the_name(tmp_path: Path) -> None:
    python, weights = maker(tmp_path), tmp_path / "weights"
    weights.mkdir()
    local = {"name": "hf", "path": str(weights)}
    keys = [
        bundle_key(ARITHMETIC, MODEL, python),
        bundle_key({**ARITHMETIC, "problems": {**ARITHMETIC["problems"], "seed": 1}}, MODEL, python),
        bundle_key(ARITHMETIC, {**MODEL, "seed": 1}, python),
        bundle_key(ARITHMETIC, MODEL, tmp_path / "another-lock" / "bin" / "python"),
        bundle_key(ARITHMETIC, local, python),
    ]
    (weights / "model.safetensors").write_bytes(b"1")
    keys.append(bundle_key(ARITHMETIC, local, python))
    assert len(set(keys)) == len(keys)
    assert bundle_key(dict(reversed(ARITHMETIC.items())), MODEL, python) == keys[0]


def test_damage_is_said_and_mended(tmp_path: Path) -> None:
    python, said = maker(tmp_path), []
    bundle = build(tmp_path, python)
    (bundle.path / "prompts.jsonl").write_text("")
    again = build_bundle(ARITHMETIC, MODEL, tmp_path / "cache", python, said.append)
    assert again.hash == bundle.hash
    assert "damaged" in said[0]
    assert "prompts.jsonl" in said[0]
    assert len(runs(tmp_path)) == 2


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ("sys.stderr.write('rlaxes-error UserError mend this: now\\n'); sys.exit(3)", UserError, "mend this: now"),
        ("sys.exit('boom')", SystemFailure, "failed with status 1: boom"),
        ("os.kill(os.getpid(), 9)", SystemFailure, "killed by signal 9"),
        ("sys.exit('SafetensorError: I/O error: No space left on device')", PrerequisiteError, "no space left in"),
        ("Path(job['out'], 'bundle.json').write_text('{')", UserError, "cannot be read"),
        ("pass", UserError, "no bundle at"),
    ],
)
def test_a_maker_that_fails_leaves_one_line_and_nothing_else(
    tmp_path: Path, body: str, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind) as caught:
        build(tmp_path, maker(tmp_path, body))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert visible(tmp_path) == []
    build(tmp_path, maker(tmp_path))


def test_progress_is_passed_on_as_it_comes(tmp_path: Path) -> None:
    said: list[str] = []
    python = maker(tmp_path, "print('one', flush=True); print('two', flush=True)\n" + textwrap.dedent(WHOLE))
    build_bundle(ARITHMETIC, MODEL, tmp_path / "cache", python, said.append)
    assert said == ["one", "two"]


def test_builders_of_one_bundle_wait_for_each_other(tmp_path: Path) -> None:
    python = maker(tmp_path, "time.sleep(0.5)\n" + textwrap.dedent(WHOLE))
    built: list[Bundle] = []
    threads = [threading.Thread(target=lambda: built.append(build(tmp_path, python))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({bundle.hash for bundle in built}) == 1
    assert len(built) == 4
    assert len(runs(tmp_path)) == 1


def test_what_a_killed_builder_left_is_cleared(tmp_path: Path) -> None:
    python = maker(tmp_path)
    bundle = build(tmp_path, python)
    bundle.path.rename(bundle.path.with_name(f".{bundle.path.name}.partial"))
    assert build(tmp_path, python).hash == bundle.hash
    assert visible(tmp_path) == [bundle.path]


def test_an_interrupted_build_ends_its_maker(tmp_path: Path) -> None:
    python = maker(tmp_path, "print('working', flush=True); time.sleep(600)")

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_bundle(ARITHMETIC, MODEL, tmp_path / "cache", python, interrupt)
    assert visible(tmp_path) == []
    assert not psutil.pid_exists(runs(tmp_path)[0])


def test_a_full_disk_is_said_before_anything_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(build_module.NEEDED_BYTES, "tiny", 1 << 60)
    with pytest.raises(PrerequisiteError, match="no space left in"):
        build(tmp_path, maker(tmp_path))
    assert runs(tmp_path) == []


def test_a_cache_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(PrerequisiteError, match="cannot be written"):
        build(tmp_path, maker(tmp_path))


def test_a_missing_interpreter_is_said(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="there is no Python at"):
        build(tmp_path, tmp_path / "nowhere" / "bin" / "python")


def test_real_makers_name_what_this_environment_lacks(tmp_path: Path) -> None:
    """The harness's own environment has no torch; everything up to the model works in it."""
    with pytest.raises(PrerequisiteError, match=r"is missing in the environment .*: rlaxes env sync"):
        build(tmp_path, Path(sys.executable))
    with pytest.raises(UserError, match="no model is called 'tyni'; did you mean 'tiny'"):
        build(tmp_path, Path(sys.executable), model={"name": "tyni"})
    with pytest.raises(UserError, match="no task is called 'arithmatic'; did you mean 'arithmetic'"):
        build(tmp_path, Path(sys.executable), {"name": "arithmatic", "problems": {"count": 1}})


def test_a_lock_is_freed_with_its_holder(tmp_path: Path) -> None:
    python = maker(tmp_path)
    bundle = build(tmp_path, python)
    child = os.fork()
    if child == 0:
        with bundle.path.with_name(f".{bundle.path.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            time.sleep(600)
    os.kill(child, 9)
    os.waitpid(child, 0)
    assert build(tmp_path, python).hash == bundle.hash
