"""Scores completions in a process of its own, with a time limit for each. Standard library only.

A verdict that could not be reached (too slow, crashed, raised) has the status `error` and no reward: a reward of 0
would teach the policy that its answer was wrong. [module step 12.1.1, 12.4.5]
"""

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from harness import errors
from harness.errors import PrerequisiteError, SystemFailure
from harness.task.bundle import Bundle
from harness.task.problem import Canary
from harness.task.worker_pipe import WorkerDied, WorkerPipe

# Importing a scoring package on a busy machine takes many seconds; it happens once a start.
START_SECONDS = 180.0
WORKER = ("harness.task.verify_worker",)


@dataclass(frozen=True)
class Verdict:
    """`reward_total` is None and `detail` says why where `status` is `error`. Times: perf_counter_ns, in the worker."""

    reward_total: float | None
    components: dict[str, float] = field(default_factory=dict)
    status: Literal["ok", "error"] = "ok"
    detail: str | None = None
    t_start: int = 0
    t_end: int = 0


class Verifier:
    """Use `Verifier.start`; `score` may be called from any thread."""

    def __init__(self, bundle: Bundle, timeout_s: float, worker: tuple[str, ...] = WORKER) -> None:
        self._bundle, self._timeout_s, self._worker = bundle, timeout_s, worker
        self._lock = threading.Lock()
        self._pipe = self._spawn()

    @classmethod
    def start(cls, bundle: Bundle, timeout_s: float, worker: tuple[str, ...] = WORKER) -> "Verifier":
        """A running verifier whose canary was checked from the calling thread; `timeout_s` is for one completion,
        `worker` the module of its process and what that is told beside the bundle and the limit.

        Raises SystemFailure naming the canary that failed or the version that differs from the bundle's, and
        PrerequisiteError where the scoring package is not installed in this environment.
        """
        return cls(bundle, timeout_s, worker)

    @property
    def version(self) -> str:
        """The scoring rule, for `verifier_version` of every rollout."""
        return self._bundle.verifier_version

    def score(self, items: Sequence[tuple[str, str]]) -> list[Verdict]:
        """One verdict for each (prompt_id, completion text), in order. Raises SystemFailure if no worker will start."""
        verdicts: dict[int, Verdict] = {}
        with self._lock:
            while len(verdicts) < len(items):
                todo = [index for index in range(len(items)) if index not in verdicts]
                failure = self._run(items, todo, verdicts)
                if failure is not None:
                    now = time.perf_counter_ns()
                    first = next(index for index in todo if index not in verdicts)
                    verdicts[first] = Verdict(None, status="error", detail=failure, t_start=now, t_end=now)
                    self._pipe.stop()
                    self._pipe = self._spawn()
        return [verdicts[index] for index in range(len(items))]

    def close(self) -> None:
        """End the worker. It also ends with this process, however that ends."""
        self._pipe.stop()

    def __enter__(self) -> "Verifier":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, items: Sequence[tuple[str, str]], todo: list[int], verdicts: dict[int, Verdict]) -> str | None:
        """Score `todo` in order into `verdicts`; returns the reason where the worker hangs or dies on one of them."""
        self._pipe.send([[index, *items[index]] for index in todo])
        left = len(todo)
        while left:
            try:
                answers = self._pipe.receive(self._timeout_s)
            except WorkerDied as died:
                return str(died)
            if not answers:
                return f"no verdict within {self._timeout_s:g} s"
            for index, total, rest, start, end in answers:
                verdicts[index] = _verdict(total, rest, start, end)
            left -= len(answers)
        return None

    def _spawn(self) -> WorkerPipe:
        module, *told = self._worker
        pipe = WorkerPipe(module, [str(self._bundle.path), str(self._timeout_s), *told])
        try:
            self._greet(pipe)
            self._check_canary(pipe)
        except BaseException:
            pipe.stop()
            raise
        return pipe

    def _greet(self, pipe: WorkerPipe) -> None:
        hello = _first(pipe, START_SECONDS, "start")
        if "refused" in hello:
            kind, message = hello["refused"]
            raise getattr(errors, kind, PrerequisiteError)(f"the verifier refused to start: {message}")
        if hello["version"] != self.version:
            raise SystemFailure(f"verifier {hello['version']} is not the bundle's {self.version}: scores would differ")

    def _check_canary(self, pipe: WorkerPipe) -> None:
        canary = Canary(**self._bundle.facts["canary"])
        for text, low, high in ((canary.right, 1.0, 1.0), (canary.wrong, 0.0, canary.wrong_at_most)):
            pipe.send([[0, canary.prompt_id, text]])
            _, total, rest, _, _ = _first(pipe, max(self._timeout_s, 1.0), "check its canary")
            found = None if total is None else rest["correctness"]
            if found is None or not low <= found <= high:
                raise SystemFailure(
                    f"verifier canary failed ({self.version}, {canary.prompt_id}): {text!r} must have a correctness "
                    f"of {low:g}..{high:g}, got {rest if found is None else found}"
                )


def _first(pipe: WorkerPipe, seconds: float, purpose: str) -> Any:
    try:
        answers = pipe.receive(seconds)
    except WorkerDied as died:
        raise SystemFailure(f"the verifier could not {purpose}: {died}") from died
    if not answers:
        raise SystemFailure(f"the verifier could not {purpose} within {seconds:g} s")
    return answers[0]


def _verdict(total: float | None, rest: Any, start: int, end: int) -> Verdict:
    if total is None:
        return Verdict(None, status="error", detail=rest, t_start=start, t_end=end)
    if not math.isfinite(total):
        return Verdict(None, status="error", detail=f"the reward is {total}", t_start=start, t_end=end)
    return Verdict(total, rest, t_start=start, t_end=end)
