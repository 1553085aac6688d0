"""Who may use an engine when: one request after another, changes of its weights between them. Standard library only."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

Made = TypeVar("Made")


class Door:
    """Lets one request in at a time. A change waits until the request in there has left, or until it lets the change
    in; either way the change is made while no forward pass runs."""

    def __init__(self) -> None:
        self._turn, self._guard = threading.Lock(), threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._busy = False

    @contextmanager
    def request(self) -> Iterator[None]:
        """Hold the engine for a request."""
        with self._turn:
            with self._guard:
                self._busy = True
            try:
                yield
            finally:
                with self._guard:
                    self._busy = False
                    self.let_in()

    def change(self, make: Callable[[], Made]) -> Made:
        """Make a change, and return or raise what it does."""
        done: Future[Made] = Future()

        def run() -> None:
            try:
                done.set_result(make())
            except BaseException as error:  # noqa: BLE001 - it is raised where the change was asked for
                done.set_exception(error)

        with self._guard:
            if not self._busy:
                run()
            else:
                self._waiting.append(run)
        return done.result()

    def let_in(self) -> bool:
        """Make the changes that wait; to be called by the request in there, where it can bear them. Whether there were
        any."""
        found = bool(self._waiting)
        while self._waiting:
            self._waiting.popleft()()
        return found
