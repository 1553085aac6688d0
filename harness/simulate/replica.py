"""A replica of the engine with continuous batching, as few events as completions.

All its sequences get a token at each decoding step, so one number tells how far each has come: the steps that were made
since the beginning. A sequence that begins at step v ends at step v + length - 1 (its first token comes from the
prefill), whoever else comes and goes; only how long a step takes changes with their number. The next end is the
smallest of a heap, and the one event that is waited for.
"""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import simpy

from harness.simulate.records import Request, Sample, Segment
from harness.simulate.settings import Rollout

ALMOST = 1e-6
"""Steps by which rounding may fall short of an end."""


class Replica:
    """One replica; `worker` names it until it dies, and its successor has another name."""

    def __init__(
        self, env: simpy.Environment, number: int, asked: Rollout, done: Callable[["Replica", Request], None]
    ) -> None:
        """`done` is called with each request of which every completion is generated."""
        self._env, self._asked, self._done = env, asked, done
        self.number, self.lives = number, 0
        self.down = False
        self.version = 0
        self._v = self._mark = self._stalled = 0.0
        self._heap: list[tuple[float, int, Sample, Request]] = []
        self._inside: deque[tuple[Sample, Request]] = deque()
        self._free = asked.slots
        self._kv = asked.kv_tokens or 0
        self._started = self._turn = 0
        self._changes: list[tuple[float, int, float, float]] = []
        self._lanes: list[int] = []
        self.requests: dict[Request, None] = {}

    @property
    def worker(self) -> str:
        """The name of its process."""
        return f"rollout-{self.number}" + (f"x{self.lives}" if self.lives else "")

    @property
    def full(self) -> bool:
        """Whether it has room for nothing at all."""
        return self.down or not self._free or bool(self.requests and self._asked.request == "part")

    def has_room(self, request: Request) -> bool:
        """Whether it may be asked for that now. Something too large for its slots is asked of an idle replica."""
        if self.down:
            return False
        if not self.requests:
            return True
        if self._asked.request == "part" or self._inside or self._free < len(request.samples):
            return False
        return not self._asked.kv_tokens or self._kv >= sum(map(_reserved, request.samples))

    def take(self, request: Request) -> None:
        """Begin a request; `touch` has to follow."""
        request.worker = self.worker
        request.lane = heappop(self._lanes) if self._lanes else len(self.requests)
        self.requests[request] = None
        self._advance()
        self._inside.extend((sample, request) for sample in request.samples)
        self._begin()

    def touch(self) -> None:
        """Wait for the next end, after whatever changed."""
        self._turn += 1
        if self._heap:
            begin = max(self._env.now, self._stalled)
            wait = max(self._heap[0][0] - self._v, 0.0) * self._asked.step(len(self._heap))
            event = self._env.timeout(begin + wait - self._env.now, self._turn)
            event.callbacks.append(self._wake)

    def serve(self, version: int, pause: float) -> None:
        """Take up a version while nothing is decoded for `pause` seconds; what is in flight goes on with it."""
        self._advance()
        now = self._env.now
        self._stalled = max(self._stalled, now) + pause
        if self._heap:
            oldest = min(sample.v_start for _, _, sample, _ in self._heap)
            self._changes = [change for change in self._changes if change[0] >= oldest]
            self._changes.append((self._v, version, now, now + pause))
            self.touch()
        self.version = version

    def die(self) -> list[Request]:
        """Lose all that is in flight, which is returned; `revive` brings a successor."""
        self._advance()
        lost = list(self.requests)
        for sample in (sample for _, _, sample, _ in self._heap):
            begun = int(sample.t_first <= self._env.now)
            self._close(sample, begun * min(sample.length, int(self._v - sample.v_start) + 1))
        self._heap, self._inside, self.requests, self._lanes, self._changes = [], deque(), {}, [], []
        self._free, self._kv = self._asked.slots, self._asked.kv_tokens or 0
        self._turn += 1
        self.down = True
        return lost

    def revive(self) -> None:
        """Begin anew, with the version that the others serve."""
        self.down, self.lives = False, self.lives + 1
        self._mark = self._stalled = self._env.now

    def _advance(self) -> None:
        now = self._env.now
        begin = self._mark if self._mark > self._stalled else self._stalled
        if self._heap and now > begin:
            self._v += (now - begin) / self._asked.step(len(self._heap))
        self._mark = now

    def _begin(self) -> None:
        """Start what is inside while slots and cache allow; of one group's prompt only the first is computed."""
        now, asked, computed = self._env.now, self._asked, None
        inside, version = self._inside, self.version
        while inside and self._free:
            sample, request = inside[0]
            need = _reserved(sample)
            if asked.kv_tokens and need > self._kv:
                return
            inside.popleft()
            self._kv -= need
            self._free -= 1
            if sample.group is not computed or asked.request == "sample":
                prompt = sample.group.prompt_tokens * asked.prefill_s_per_token
                self._stalled = (self._stalled if self._stalled > now else now) + prompt
                computed = sample.group
            sample.version, sample.t_start, sample.v_start = version, now, self._v
            sample.t_first = self._stalled
            self._started += 1
            heappush(self._heap, (self._v + sample.length - 1, self._started, sample, request))

    def _wake(self, event: Any) -> None:
        if event.value != self._turn:
            return
        self._advance()
        heap, reached = self._heap, self._v + ALMOST
        ended = []
        while heap and heap[0][0] <= reached:
            _, _, sample, request = heappop(heap)
            self._free += 1
            self._kv += _reserved(sample)
            self._close(sample, sample.length)
            request.left -= 1
            if not request.left:
                ended.append(request)
        if self._inside:
            self._begin()
        for request in ended:
            del self.requests[request]
            heappush(self._lanes, request.lane)
            self._done(self, request)
        self.touch()

    def _close(self, sample: Sample, tokens: int) -> None:
        sample.t_end, sample.made = self._env.now, tokens
        if self._changes and self._changes[-1][0] >= sample.v_start and self.version != sample.version:
            sample.segments = self._segments(sample, tokens)

    def _segments(self, sample: Sample, tokens: int) -> list[Segment]:
        """The tokens of each version; its first is the prefill's."""
        out: list[Segment] = []
        version, begin, given = sample.version, sample.t_first, 0
        for v, new, t_pause, t_back in self._changes:
            if v < sample.v_start or t_pause < sample.t_start:
                continue
            count = min(int(v - sample.v_start) + 1, tokens) - given
            if count > 0:
                out.append((version, count, begin, max(begin, t_pause)))
                given += count
            version, begin = new, max(begin, t_back)
        if tokens > given:
            out.append((version, tokens - given, begin, max(begin, sample.t_end)))
        return out


def _reserved(sample: Sample) -> int:
    return sample.group.prompt_tokens + sample.length
