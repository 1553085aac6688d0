"""A file that is hashed and counted while somebody reads it."""

import hashlib
import io
from collections.abc import Callable
from typing import BinaryIO

from harness.ingest.lines import PIECE_BYTES


class Watched(io.RawIOBase):
    """Reads from a stream and knows the SHA-256 and the number of the bytes that went through."""

    def __init__(self, stream: BinaryIO, moved: Callable[[int], None]) -> None:
        """`moved` is told of each read how many bytes it was."""
        super().__init__()
        self._stream, self._moved, self._hash = stream, moved, hashlib.sha256()
        self.bytes = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; fewer only at the end."""
        data = self._stream.read(size)
        self._hash.update(data)
        self.bytes += len(data)
        self._moved(len(data))
        return data

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """The same into a buffer, for `io.BufferedReader` and `io.TextIOWrapper`."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def drained(self) -> str:
        """The SHA-256 of the whole, after what nobody read has been read too."""
        while self.read(PIECE_BYTES):
            pass
        return self._hash.hexdigest()
