"""The pool of verifiers: each scores a request's completions in turn, and gives up on one that takes too long."""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import simpy

from harness.simulate.draws import Draws
from harness.simulate.records import Request
from harness.simulate.settings import Verifier

BLOCK = 8192


class VerifierPool:
    """Requests wait in the order of their arrival."""

    def __init__(
        self,
        env: simpy.Environment,
        asked: Verifier,
        right: float,
        rng: np.random.Generator,
        done: Callable[[Request], None],
    ) -> None:
        self._env, self._timeout, self._right, self._rng, self._done = env, asked.timeout_s, right, rng, done
        self._seconds = Draws(asked.seconds, rng)
        self._free = list(range(asked.workers))[::-1]
        self._waiting: deque[Request] = deque()
        self._verdicts: list[bool] = []
        self._asked, self._life = asked, 0

    def submit(self, request: Request) -> None:
        """Score a request when a worker is free."""
        if self._free:
            self._start(request)
        else:
            self._waiting.append(request)

    def reset(self) -> None:
        """Forget all requests."""
        self._life += 1
        self._free = list(range(self._asked.workers))[::-1]
        self._waiting.clear()

    def _start(self, request: Request) -> None:
        t = self._env.now
        worker = request.verifier = self._free.pop()
        for sample in request.samples:
            seconds = self._seconds.next()
            sample.t_verify = t
            if seconds >= self._timeout:
                seconds, sample.failed = self._timeout, True
            t += seconds
            sample.t_verified = t
            sample.right = self._verdict()
        wait = t - self._env.now
        event = self._env.timeout(wait, (worker, request, self._life))
        event.callbacks.append(self._ended)

    def _ended(self, event: Any) -> None:
        worker, request, life = event.value
        if life != self._life:
            return
        self._free.append(worker)
        if self._waiting:
            self._start(self._waiting.popleft())
        self._done(request)

    def _verdict(self) -> bool:
        if not self._verdicts:
            self._verdicts = (self._rng.random(BLOCK) < self._right).tolist()
        return self._verdicts.pop()
