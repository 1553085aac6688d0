"""The verifier's own process: `python -m harness.task.verify_worker BUNDLE SECONDS`.

JSON lines: out `{"version": ...}` once, or `{"refused": [kind, message]}`; then for each `[index, prompt_id, text]`
that comes in, `[index, total, components, t_start, t_end]` goes out, or `[index, null, message, t_start, t_end]`.
Times are `time.perf_counter_ns()`, which on Linux is one clock for all processes.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, BinaryIO

from harness.errors import RlaxesError
from harness.task.bundle import Bundle
from harness.task.kinds import kind_of
from harness.task.orphan import exit_with_parent
from harness.task.problem import Problem, Scorer


def main(bundle_path: str, seconds: float, around: Callable[[Scorer], Scorer] = lambda scorer: scorer) -> None:
    """Answer requests until standard input ends; `around` puts something about the scoring rule, for drills."""
    exit_with_parent()
    # What a scoring rule prints must not mix with the answers: it goes to standard error from here on.
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    try:
        bundle = Bundle.load(bundle_path)
        kind, settings = kind_of(bundle.task["name"]), bundle.task["problems"]
        version, scorer = kind.version(settings), around(kind.scorer(settings))
    except RlaxesError as error:
        _send(answers, {"refused": [type(error).__name__, str(error)]})
        return
    _send(answers, {"version": version})
    _serve(answers, {prompt.prompt_id: prompt for prompt in bundle.prompts}, scorer, seconds)


def _serve(answers: BinaryIO, problems: dict[str, Problem], scorer: Scorer, seconds: float) -> None:
    for line in sys.stdin.buffer:
        index, prompt_id, text = json.loads(line)
        # The parent enforces the limit. This alarm, which the kernel delivers even inside C code that never returns,
        # ends the process should the parent have been killed meanwhile.
        signal.setitimer(signal.ITIMER_REAL, 2 * seconds + 1)
        _send(answers, _score(index, problems, scorer, prompt_id, text))
        signal.setitimer(signal.ITIMER_REAL, 0)


def _score(index: int, problems: dict[str, Problem], scorer: Scorer, prompt_id: str, text: str) -> list[Any]:
    start = time.perf_counter_ns()
    try:
        score = scorer(problems[prompt_id], text)
    except Exception as error:  # noqa: BLE001 - whatever a scoring rule raises is an error of the verifier, not a 0
        return [index, None, f"{type(error).__name__}: {error}", start, time.perf_counter_ns()]
    return [index, score.total, score.components, start, time.perf_counter_ns()]


def _send(answers: BinaryIO, message: Any) -> None:
    data = memoryview(json.dumps(message).encode() + b"\n")
    while data:
        data = data[answers.write(data) :]


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
