"""The cluster's interface over threads of this process: the roles are the real ones, what they say is copied as it is
between processes, and a test need not wait for processes to start."""

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from adapters.reference.cluster import Actor, ActorLost, Call
from adapters.reference.settings import Settings
from harness.errors import SystemFailure


class _Lost(Exception):
    pass


class _Handle:
    """An actor's methods, each run by its own threads once it is built."""

    def __init__(self, kind: type, arguments: Sequence[Any], concurrency: int) -> None:
        self.kind, self.dead = kind, False
        self._threads = ThreadPoolExecutor(concurrency)
        self.built = self._threads.submit(kind, *_copied(arguments))

    def __getattr__(self, name: str) -> Any:
        return _Method(self, name)

    def start(self, name: str, arguments: Sequence[Any]) -> Future[Any]:
        return self._threads.submit(self._run, name, _copied(arguments))

    def _run(self, name: str, arguments: Sequence[Any]) -> Any:
        if self.dead:
            raise _Lost
        answer = getattr(self.built.result(), name)(*arguments)
        if self.dead:
            raise _Lost
        return _copied([answer])[0]


class _Method:
    def __init__(self, handle: _Handle, name: str) -> None:
        self._handle, self._name = handle, name

    def remote(self, *arguments: Any) -> Future[Any]:
        return self._handle.start(self._name, arguments)


def _copied(values: Sequence[Any]) -> list[Any]:
    return list(pickle.loads(pickle.dumps(list(values))))


class ThreadCluster:
    """See `cluster.Cluster`. `before_wait` lets a test step in, and `actors` find whom."""

    before_wait: Callable[["ThreadCluster"], None] = staticmethod(lambda cluster: None)

    def __init__(self, settings: Settings) -> None:
        self.actors: dict[str, _Handle] = {}

    def actor(self, kind: type, name: str, *arguments: Any, concurrency: int = 1) -> Actor:
        self.actors[name] = _Handle(kind, arguments, concurrency)
        return Actor(name, self.actors[name])

    def wait(self, calls: Sequence[Call], seconds: float) -> list[Call]:
        type(self).before_wait(self)
        done, _ = wait([call.future for call in calls], timeout=seconds, return_when=FIRST_COMPLETED)
        return [call for call in calls if call.future in done]

    def result(self, call: Call) -> Any:
        try:
            return call.future.result()
        except _Lost:
            raise ActorLost(call.actor, "its process was ended") from None
        except Exception as error:
            raise SystemFailure(f"{call.actor.name}: {type(error).__name__}: {error}") from error

    def results(self, calls: Sequence[Call]) -> list[Any]:
        return [self.result(call) for call in calls]

    def close(self) -> None:
        """A process that dies takes its engine's threads along; those of a dead actor here would never end."""
        for handle in self.actors.values():
            if handle.dead:
                handle.built.result()._stack.close()
