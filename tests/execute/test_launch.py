"""Process groups: ended at their limits, with everything they started; nothing outlives the harness."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from harness.errors import HarnessBug
from harness.execute.family import MARK, mark_of
from harness.execute.launch import PROCESS_FILE, Launcher, Limits, Outcome, child_environment, end_orphan
from harness.execute.verdict import Verdict, judge

GENEROUS = Limits(300, 2**40)


def _run(folder: Path, code: str, limits: Limits = GENEROUS) -> Outcome:
    env = os.environ | {MARK: mark_of(folder)}
    return Launcher(folder, limits, None).run([sys.executable, "-c", code], env, lambda: None)


def _ended(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_output_is_kept_and_the_code_returned(tmp_path: Path) -> None:
    outcome = _run(tmp_path, "print('hello'); raise SystemExit(3)")
    assert (outcome.ending, outcome.returncode) == ("exited", 3)
    assert (tmp_path / "output.log").read_text() == "hello\n"


def test_a_hang_is_ended_with_its_children_and_its_last_sign_is_told(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time, json, pathlib\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "pathlib.Path('progress.json').write_text(json.dumps({'done': 7, 'total': 20, 'text': 'step 7'}))\n"
        "pathlib.Path('child').write_text(str(child.pid)); time.sleep(600)\n"
    )
    limits = Limits(3.0, 2**40)
    outcome = _run(tmp_path, code, limits)
    assert outcome.ending == "timed_out"
    verdict = judge(outcome, tmp_path / "output.log", limits, finished=False)
    assert (verdict.status, verdict.cause) == ("failed", "system")
    assert "step 7 (7 of 20)" in str(verdict.reason)
    assert _ended(int((tmp_path / "child").read_text()))


def test_what_lives_in_a_session_of_its_own_is_ended_when_its_parent_is_killed(tmp_path: Path) -> None:
    """As Ray's daemons and their workers do: no process group leads to them, and once orphaned no parent either."""
    worker = "import time; time.sleep(600)"
    daemon = (
        "import pathlib, subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {worker!r}], start_new_session=True)\n"
        "pathlib.Path('worker').write_text(str(child.pid)); time.sleep(600)\n"
    )
    code = (
        "import os, pathlib, signal, subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {daemon!r}], start_new_session=True)\n"
        "pathlib.Path('daemon').write_text(str(child.pid)); time.sleep(4); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert _run(tmp_path, code).returncode == -9
    for name in ("daemon", "worker"):
        assert _ended(int((tmp_path / name).read_text()))


DAEMON = """
import os, pathlib, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        {first}
        pathlib.Path('daemon.partial').write_text(str(os.getpid())); os.rename('daemon.partial', 'daemon')
        time.sleep(600)
    os._exit(0)
os.wait()
while not os.path.exists('daemon'):
    time.sleep(0.01)
"""
"""A daemon that nothing leads to: its parent has ended before anybody looked, and it is in a session of its own."""


@pytest.mark.parametrize("first", ["pass", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"])
def test_a_daemon_that_forked_twice_is_ended_whether_it_listens_or_not(tmp_path: Path, first: str) -> None:
    assert _run(tmp_path, DAEMON.format(first=first)).returncode == 0
    assert _ended(int((tmp_path / "daemon").read_text()))


def test_a_daemon_of_a_killed_harness_is_ended_by_the_next(tmp_path: Path) -> None:
    env = os.environ | {MARK: mark_of(tmp_path)}
    subprocess.run([sys.executable, "-c", DAEMON.format(first="pass")], cwd=tmp_path, env=env, check=True)
    other = tmp_path / "other"
    other.mkdir()
    end_orphan(other)
    assert not _ended(int((tmp_path / "daemon").read_text()))
    end_orphan(tmp_path)
    assert _ended(int((tmp_path / "daemon").read_text()))


def test_what_a_cell_says_before_its_first_step_is_kept(tmp_path: Path) -> None:
    code = (
        "import pathlib, time\n"
        "from harness.probe import Probe\n"
        "probe = Probe({'directory': '.', 'attempt': 0, 'run_id': 'r'}, enabled=False)\n"
        "polls = lambda: len(list(pathlib.Path('polls').iterdir()))\n"
        "for done, text in [(0, 'starting'), (0, 'loading'), (2, 'step 2')]:\n"
        "    probe.progress(done, 2, text)\n"
        "    seen = polls()\n"
        "    while polls() < seen + 2:\n"
        "        time.sleep(0.01)\n"
    )
    polls = tmp_path / "polls"
    polls.mkdir()
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    launcher = Launcher(tmp_path, GENEROUS, None)
    outcome = launcher.run([sys.executable, "-c", code], env, lambda: (polls / str(len(list(polls.iterdir())))).touch())
    assert [text for _, text in outcome.startup] == ["starting", "loading"]
    assert "step 2 (2 of 2)" in outcome.last_sign


def test_a_process_past_its_memory_limit_is_ended(tmp_path: Path) -> None:
    limits = Limits(60, 150 * 2**20)
    outcome = _run(tmp_path, "import time; block = b'x' * (400 * 2**20); time.sleep(60)", limits)
    assert outcome.ending == "out_of_memory"
    assert "out of memory" in str(judge(outcome, tmp_path / "output.log", limits, finished=False).reason)


def test_the_child_of_a_killed_harness_dies_with_it(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys; from harness.execute.launch import Launcher, Limits\n"
        f"Launcher(pathlib.Path({str(tmp_path)!r}), Limits(60, 2**40), None).run("
        "[sys.executable, '-c', 'import time; time.sleep(600)'], dict(os.environ), lambda: None)"
    )
    harness = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2])
    record = tmp_path / PROCESS_FILE
    while not record.exists():
        time.sleep(0.05)
    time.sleep(0.2)
    child = psutil.Process(json.loads(record.read_text())["members"][0][0])
    harness.kill()
    harness.wait()
    psutil.wait_procs([child], timeout=20)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_an_orphan_is_ended_and_a_reused_pid_is_not(tmp_path: Path) -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    try:
        created = psutil.Process(sleeper.pid).create_time()
        (tmp_path / PROCESS_FILE).write_text(json.dumps({"members": [[sleeper.pid, 1.0]]}))
        end_orphan(tmp_path)
        assert sleeper.poll() is None
        (tmp_path / PROCESS_FILE).write_text(json.dumps({"members": [[sleeper.pid, created]]}))
        end_orphan(tmp_path)
        assert sleeper.wait(timeout=30) != 0
    finally:
        sleeper.kill()


def test_the_environment_is_the_frameworks_own() -> None:
    env = child_environment(Path("/imports"), Path("/cell.json"), {"A": "1"}, 2)
    assert (env["PYTHONPATH"], env["RLAXES_CELL"], env["A"], env["OMP_NUM_THREADS"]) == (
        "/imports",
        "/cell.json",
        "1",
        "2",
    )
    assert (env["OMP_WAIT_POLICY"], env["RAY_worker_niceness"]) == ("PASSIVE", "0")
    assert "VIRTUAL_ENV" not in env
    with pytest.raises(HarnessBug, match="PYTHONPATH"):
        child_environment(Path("/imports"), Path("/cell.json"), {"PYTHONPATH": "x"}, 2)


@pytest.mark.parametrize(
    ("line", "cause", "words"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "system", "out of memory"),
        ("OSError: [Errno 28] No space left on device", "infrastructure", "disk full"),
        ("harness.errors.HarnessBug: no", "harness", "HarnessBug: no"),
        ("harness.contract.writer.BatchRefused: batch of 8 rollouts refused", "harness", "BatchRefused"),
        ("ValueError: bad shape", "system", "ValueError: bad shape"),
    ],
)
def test_a_crash_has_a_cause_and_one_line_of_reason(tmp_path: Path, line: str, cause: str, words: str) -> None:
    (tmp_path / "output.log").write_text(f"Traceback (most recent call last):\n  File x\n{line}\n")
    verdict = judge(Outcome("exited", 1, 1.0, 0, "no sign"), tmp_path / "output.log", GENEROUS, finished=False)
    assert (verdict.status, verdict.cause) == ("failed", cause)
    assert words in str(verdict.reason)
    assert "\n" not in str(verdict.reason)


def test_ending_with_zero_is_not_enough(tmp_path: Path) -> None:
    ended = Outcome("exited", 0, 1.0, 0, "")
    assert judge(ended, tmp_path / "output.log", GENEROUS, finished=True) == Verdict("ok")
    assert judge(ended, tmp_path / "output.log", GENEROUS, finished=False).status == "failed"


def test_an_attempt_is_judged_by_its_own_words(tmp_path: Path) -> None:
    log, words = tmp_path / "output.log", ["ValueError: mine", "killed", "KeyError: theirs"]
    log.write_text("\n".join(words) + "\n")
    edges = [0, *(sum(len(word) + 1 for word in words[: k + 1]) for k in range(3))]
    ended = [Outcome("exited", code, 1.0, 0, "no sign") for code in (1, -9, 1)]
    judged = [
        judge(one, log, GENEROUS, finished=False, words=range(edges[k], edges[k + 1])) for k, one in enumerate(ended)
    ]
    assert [verdict.reason for verdict in judged] == [
        "ValueError: mine",
        "killed by signal 9; last sign: no sign",
        "KeyError: theirs",
    ]
