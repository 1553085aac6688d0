import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from adapters.reference.engine import Finished, Generation
from adapters.reference.engine_thread import EngineThread


class Noting:
    """An engine that notes which thread calls it."""

    name, publication_kind = "noting", "full"

    def __init__(self, seen: list[int]) -> None:
        self._seen = seen
        seen.append(threading.get_ident())

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        n: int,
        max_tokens: int,
        between: Callable[[], bool] | None = None,
        finished: Finished | None = None,
    ) -> Generation:
        self._seen.append(threading.get_ident())
        if between is not None:
            assert between()
        return Generation([], [])

    def publish(self, weights: Iterable[tuple[str, Any]], version: int) -> int:
        self._seen.append(threading.get_ident())
        if version < 0:
            raise ValueError("no such version")
        return 0

    def close(self) -> None:
        self._seen.append(threading.get_ident())


def test_every_call_comes_from_the_thread_that_made_it() -> None:
    seen: list[int] = []
    engine = EngineThread(lambda: Noting(seen))
    callers = [threading.Thread(target=engine.generate, args=([], 1, 1)) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(10)
    # A publication between two forward passes is asked for in the engine's own thread.
    engine.generate([], 1, 1, between=lambda: engine.publish([], 1) == 0)
    with pytest.raises(ValueError, match="no such version"):
        engine.publish([], -1)
    engine.close()
    assert len(seen) == 9
    assert set(seen) == {seen[0]} != {threading.get_ident()}
