"""Whole runs with the loop of known truth: failures are rows, kills lose nothing that had ended."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.audit import check_run
from harness.contract import read_cell
from harness.errors import UserError
from harness.execute.run_folder import find_run
from harness.execute.session import choices_of, run_session

ROOT = Path(__file__).resolve().parents[2]
HANG_LIMIT = ["profile.time_limit_s=15"]
COMPARE = "from harness.cli import app; import sys; app(sys.argv[1:])"


def _run(output: Path, *words: str) -> tuple[Path, dict[str, Any]]:
    folder = run_session(choices_of(["adapter=fake", f"output={output}", *words], single=False), Console(stderr=True))
    return folder, json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


def test_a_run_leaves_a_whole_manifest_and_lawful_ledgers(tmp_path: Path) -> None:
    folder, manifest = _run(tmp_path, "repeats=2", "task.steps=4", "task.warmup_steps=1")
    assert [cell["status"] for cell in manifest["cells"]] == ["ok", "ok"]
    assert manifest["finished"]
    assert manifest["start_order"] == [cell["cell_id"] for cell in manifest["cells"]]
    for key in ("rlaxes", "machine", "load", "configs", "adapters", "locks", "plan_hash"):
        assert key in manifest
    assert check_run(folder) == []


@pytest.mark.parametrize(
    ("mode", "words"),
    [("crash", "RuntimeError: told to crash"), ("oom", "out of memory"), ("hang", "hung: no end within 15 s")],
)
def test_a_cell_that_goes_wrong_is_a_row_and_keeps_what_it_flushed(tmp_path: Path, mode: str, words: str) -> None:
    limit = HANG_LIMIT if mode == "hang" else []
    folder, manifest = _run(tmp_path, "repeats=1", f"adapter.mode={mode}", *limit)
    (cell,) = manifest["cells"]
    assert (cell["status"], cell["cause"]) == ("failed", "system")
    assert words in cell["reason"]
    assert check_run(folder) == []
    ledger = read_cell(folder / "ledger", cell["cell_id"])
    assert ledger.torn
    assert ledger.table("updates").num_rows == 2


def test_verifier_errors_and_losses_are_counted_not_hidden(tmp_path: Path) -> None:
    truth = ["adapter.error_every=5", "adapter.drop_every=7", "adapter.left_in_flight=1", "task.prompts_per_batch=8"]
    folder, manifest = _run(tmp_path, "repeats=1", "task.steps=4", "task.warmup_steps=1", *truth)
    assert manifest["cells"][0]["status"] == "ok"
    assert check_run(folder) == []
    fates = read_cell(folder / "ledger", manifest["cells"][0]["cell_id"]).table("fates").to_pylist()
    reasons = [fate["reason"] for fate in fates]
    assert reasons.count("verifier_error") == 5 * 64 // 5
    assert {fate["fate"] for fate in fates} == {"trained", "dropped", "in_flight"}


def test_a_wrong_mode_is_one_line(tmp_path: Path) -> None:
    _, manifest = _run(tmp_path, "repeats=1", "adapter.mode=sulk")
    assert manifest["cells"][0]["status"] == "not_run"
    assert "adapter.mode=sulk" in manifest["cells"][0]["reason"]


def test_runs_are_found_by_path_id_or_latest(tmp_path: Path) -> None:
    folder, _ = _run(tmp_path, "repeats=1", "task.steps=2", "task.warmup_steps=0")
    assert find_run("latest", tmp_path) == find_run(folder.name, tmp_path) == find_run(str(folder), tmp_path) == folder
    with pytest.raises(UserError, match=f"the newest here is {folder.name}"):
        find_run("yesterday", tmp_path)


def test_twenty_kills_of_the_harness_lose_no_cell_that_had_ended(tmp_path: Path) -> None:
    words = ["adapter=fake", "repeats=6", "task.steps=4", "task.warmup_steps=1", f"output={tmp_path}"]
    argv = [sys.executable, "-c", COMPARE, "compare", *words, "adapter.mode=slow", "adapter.slow_s=0.05"]
    chance = random.Random(7)
    kept: set[tuple[str, str]] = set()
    for _ in range(20):
        process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(1.0, 7.0))
        finished = process.poll() is not None
        process.send_signal(signal.SIGKILL)
        process.wait()
        now = _ended(tmp_path)
        assert kept <= now
        kept = now
        if finished:
            break
    subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, timeout=300)
    (folder,) = tmp_path.iterdir()
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert [cell["status"] for cell in manifest["cells"]] == ["ok"] * 6
    assert kept <= _ended(tmp_path)
    assert check_run(folder) == []
    for torn in manifest["torn"]:
        assert (folder / "cells" / torn / "ledger").is_dir()


def _ended(output: Path) -> set[tuple[str, str]]:
    """Cells that have ended, with the moment at which they were written: a cell done again would have another."""
    return {(path.parent.name, str(path.stat().st_mtime_ns)) for path in output.glob("*/cells/*/done.json")}
