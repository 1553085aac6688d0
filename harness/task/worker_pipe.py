"""A child process that speaks JSON lines, driven without threads, signals or a blocking write."""

import json
import os
import selectors
import subprocess
import sys
import time
import weakref
from pathlib import Path
from typing import Any

# The folder that holds `harness`: the child must import the same copy whatever its working folder is.
SOURCE_ROOT = Path(__file__).resolve().parents[2]
_CHUNK = 1 << 16


class WorkerDied(Exception):
    """The child closed its output; the message says how it ended."""


class WorkerPipe:
    """Starts `python -m MODULE ARGUMENTS`; usable from any thread, by one at a time."""

    def __init__(self, module: str, arguments: list[str]) -> None:
        paths = [str(SOURCE_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._into, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._into, False)
        os.set_blocking(self._out, False)
        self._unsent, self._partial = bytearray(), b""
        self.stop = weakref.finalize(self, _stop, self._process, os.getpid())

    def send(self, messages: list[Any]) -> None:
        """Queue messages; `receive` writes them as the child reads, so that neither side waits for the other."""
        self._unsent += b"".join(json.dumps(message).encode() + b"\n" for message in messages)

    def receive(self, seconds: float) -> list[Any]:
        """The messages that have arrived, as soon as there is one; [] after `seconds` without any.

        Raises WorkerDied once the child has closed its output.
        """
        until = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._out, selectors.EVENT_READ)
            if self._unsent:
                selector.register(self._into, selectors.EVENT_WRITE)
            while True:
                ready = {key.fd for key, _ in selector.select(max(0.0, until - time.monotonic()))}
                if self._into in ready and not self._write():
                    selector.unregister(self._into)
                messages = self._read() if self._out in ready else []
                if messages or time.monotonic() >= until:
                    return messages

    def _write(self) -> bool:
        """Write what fits; False once nothing is left to write or nobody reads."""
        try:
            del self._unsent[: os.write(self._into, self._unsent[:_CHUNK])]
        except BrokenPipeError:
            self._unsent.clear()
        return bool(self._unsent)

    def _read(self) -> list[Any]:
        data = os.read(self._out, _CHUNK)
        if not data:
            self.stop()
            raise WorkerDied(f"the verifier's process ended with status {self._process.returncode}")
        *lines, self._partial = (self._partial + data).split(b"\n")
        return [json.loads(line) for line in lines]


def _stop(process: subprocess.Popen[bytes], owner: int) -> None:
    """End and reap the child: on `stop()`, garbage collection or exit, and only in the process that started it."""
    if os.getpid() != owner:
        return
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    try:
        process.wait(0.2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
