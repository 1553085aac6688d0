"""An engine in a thread of its own, whoever calls it."""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from adapters.reference.engine import Engine, Finished, Generation

Made = TypeVar("Made")


class EngineThread:
    """Runs every call of an engine in the thread that made it. An actor's calls come from many threads, OpenMP keeps a
    number of threads for each of them, and vLLM's CPU kernels end the process where that number changes."""

    def __init__(self, make: Callable[[], Engine]) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="engine")
        self._own = self._pool.submit(threading.get_ident).result()
        self._engine = self._run(make)
        self.name, self.publication_kind = self._engine.name, self._engine.publication_kind

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        n: int,
        max_tokens: int,
        between: Callable[[], bool] | None = None,
        finished: Finished | None = None,
    ) -> Generation:
        """See `Engine.generate`; `between` and `finished` are called in the engine's thread."""
        return self._run(partial(self._engine.generate, prompts, n, max_tokens, between, finished))

    def publish(self, weights: Iterable[tuple[str, Any]], version: int) -> int:
        """See `Engine.publish`."""
        return self._run(partial(self._engine.publish, weights, version))

    def close(self) -> None:
        """See `Engine.close`; ends the thread."""
        self._run(self._engine.close)
        self._pool.shutdown()

    def _run(self, call: Callable[[], Made]) -> Made:
        return call() if threading.get_ident() == self._own else self._pool.submit(call).result()
