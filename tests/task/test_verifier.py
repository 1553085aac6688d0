"""A verdict that cannot be reached is an error and never a reward of 0, whatever the scoring rule does."""

import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from harness.errors import PrerequisiteError, SystemFailure
from harness.task import verifier as verifier_module
from harness.task.bundle import Bundle
from harness.task.verifier import Verdict, Verifier
from harness.task.worker_pipe import SOURCE_ROOT
from tests.task.bundles import ARITHMETIC, GYM, write_bundle, write_obedient_gym

LIMIT_S = 1.0


@pytest.fixture
def arithmetic(tmp_path: Path) -> Iterator[Verifier]:
    with Verifier.start(Bundle.load(write_bundle(tmp_path / "b")), LIMIT_S) as verifier:
        yield verifier


@pytest.fixture
def gym_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bundle:
    monkeypatch.setenv("PYTHONPATH", str(write_obedient_gym(tmp_path / "packages")))
    return Bundle.load(write_bundle(tmp_path / "g", GYM))


@pytest.fixture
def obedient(gym_bundle: Bundle) -> Iterator[Verifier]:
    with Verifier.start(gym_bundle, LIMIT_S) as verifier:
        yield verifier


def rewards(verdicts: list[Verdict]) -> list[float | None]:
    return [verdict.reward_total for verdict in verdicts]


def workers() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "harness.task.verify_worker" in " ".join(child.cmdline())]


def test_answers_are_scored_in_order(arithmetic: Verifier, tmp_path: Path) -> None:
    prompts = Bundle.load(tmp_path / "b").prompts
    before = time.perf_counter_ns()
    verdicts = arithmetic.score([(p.prompt_id, p.answer if i % 2 else "no") for i, p in enumerate(prompts)])
    after = time.perf_counter_ns()
    assert rewards(verdicts) == [0.0, 1.0] * 4
    assert all(v.status == "ok" and v.components == {"correctness": v.reward_total} for v in verdicts)
    assert all(before <= v.t_start <= v.t_end <= after for v in verdicts)
    assert arithmetic.version == "arithmetic-1"
    assert arithmetic.score([]) == []


def test_more_than_the_pipes_hold_goes_through(arithmetic: Verifier, tmp_path: Path) -> None:
    prompt = Bundle.load(tmp_path / "b").prompts[0]
    verdicts = arithmetic.score([(prompt.prompt_id, "x\n\u2028\ud800" * 200 + prompt.answer)] * 3000)
    assert rewards(verdicts) == [1.0] * 3000


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        ("hang", "no verdict within 1 s"),
        ("hang in C", "no verdict within 1 s"),
        ("die", "ended with status 9"),
        ("raise", "ValueError: no such thing"),
        ("nan", "the reward is nan"),
    ],
)
def test_a_failure_costs_its_own_completion_alone(obedient: Verifier, answer: str, detail: str) -> None:
    verdicts = obedient.score([("p0", "yes"), ("p1", answer), ("p2", "yes"), ("p0", "no")])
    assert rewards(verdicts) == [1.0, None, 1.0, 0.0]
    assert verdicts[1].status == "error"
    assert verdicts[1].detail is not None
    assert detail in verdicts[1].detail
    assert rewards(obedient.score([("p0", "yes")])) == [1.0]
    assert len(workers()) == 1


def test_what_a_rule_prints_is_no_answer(obedient: Verifier) -> None:
    assert rewards(obedient.score([("p0", "print"), ("p1", "yes"), ("p2", "no")])) == [1.0, 1.0, 0.0]


def test_an_unknown_prompt_is_an_error(arithmetic: Verifier) -> None:
    (verdict,) = arithmetic.score([("nobody", "1")])
    assert verdict.status == "error"
    assert verdict.reward_total is None


def test_threads_share_a_verifier_and_start_their_own(arithmetic: Verifier, gym_bundle: Bundle, tmp_path: Path) -> None:
    prompt = Bundle.load(tmp_path / "b").prompts[0]
    found: list[list[float | None]] = []

    def work() -> None:
        found.append(rewards(arithmetic.score([(prompt.prompt_id, prompt.answer)] * 50)))
        with Verifier.start(gym_bundle, LIMIT_S) as own:
            found.append(rewards(own.score([("p0", "yes"), ("p0", "hang"), ("p0", "no")])))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found, key=len) == [[1.0, None, 0.0]] * 3 + [[1.0] * 50] * 3


@pytest.mark.parametrize(
    ("canary", "text"),
    [
        ({"right": "999"}, "'999' must have a correctness of 1..1, got 0.0"),
        ({"wrong": None}, "must have a correctness of 0..0, got 1.0"),
    ],
)
def test_a_canary_that_fails_stops_the_start(tmp_path: Path, canary: dict[str, str | None], text: str) -> None:
    facts = Bundle.load(write_bundle(tmp_path / "good")).facts["canary"]
    changed = {key: facts["right"] if value is None else value for key, value in canary.items()}
    bundle = Bundle.load(write_bundle(tmp_path / "bad", ARITHMETIC, canary={**facts, **changed}))
    with pytest.raises(SystemFailure, match="verifier canary failed") as caught:
        Verifier.start(bundle, LIMIT_S)
    assert text in str(caught.value)
    assert workers() == []


def test_another_version_of_the_rule_is_refused(tmp_path: Path) -> None:
    bundle = Bundle.load(write_bundle(tmp_path / "b", ARITHMETIC, verifier_version="arithmetic-0"))
    with pytest.raises(SystemFailure, match="verifier arithmetic-1 is not the bundle's arithmetic-0"):
        Verifier.start(bundle, LIMIT_S)


def test_a_missing_package_is_named_with_its_command(tmp_path: Path) -> None:
    bundle = Bundle.load(write_bundle(tmp_path / "g", GYM))
    with pytest.raises(PrerequisiteError, match="pip install reasoning-gym"):
        Verifier.start(bundle, LIMIT_S)


def test_a_worker_that_never_starts_is_a_system_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier_module, "START_SECONDS", 0.0)
    with pytest.raises(SystemFailure, match="could not start within 0 s"):
        Verifier.start(Bundle.load(write_bundle(tmp_path / "b")), LIMIT_S)
    assert workers() == []


OWNER = """
    import os, sys, threading, time
    from harness.task.bundle import Bundle
    from harness.task.verifier import Verifier
    verifier = Verifier.start(Bundle.load(sys.argv[1]), 30.0 if len(sys.argv) < 4 else float(sys.argv[3]))
    print(verifier._pipe._process.pid, flush=True)
    if sys.argv[2] == "leave":
        sys.exit(0)
    if sys.argv[2] != "idle":
        verifier.score([("p0", sys.argv[2])])
    time.sleep(600)
"""


def owner(bundle: Bundle, *arguments: str) -> tuple[subprocess.Popen[str], psutil.Process]:
    command = [sys.executable, "-c", textwrap.dedent(OWNER), str(bundle.path), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=SOURCE_ROOT)
    assert process.stdout is not None
    return process, psutil.Process(int(process.stdout.readline()))


@pytest.mark.parametrize("arguments", [("idle",), ("hang", "30"), ("hang in C", "0.5")], ids=" ".join)
def test_a_killed_owner_leaves_no_worker(gym_bundle: Bundle, arguments: tuple[str, ...]) -> None:
    process, worker = owner(gym_bundle, *arguments)
    time.sleep(0.3)
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs([worker], timeout=20)
    assert alive == []


def test_an_owner_that_forgot_to_close_leaves_no_worker(gym_bundle: Bundle) -> None:
    process, worker = owner(gym_bundle, "leave")
    process.communicate()
    assert process.returncode == 0
    assert not worker.is_running()


def test_closing_leaves_no_zombie(tmp_path: Path) -> None:
    verifier = Verifier.start(Bundle.load(write_bundle(tmp_path / "b")), LIMIT_S)
    (worker,) = workers()
    verifier.close()
    verifier.close()
    assert not worker.is_running()
