"""Two buffers that the processes of one machine share: one is served while the next publication is written into the
other. Standard library only.

The memory has no name in any folder: others open it through the process that made it, so that nothing of it outlives
the processes, whatever kills them, and the size of `/dev/shm` does not matter. All of it is allocated at the start; on
a full machine that is an error there and not a bus error later.
"""

import mmap
import os
from typing import Self

PAGE = 4096
MOST_RANKS = PAGE // 16
UNFINISHED = -1


class Slots:
    """Slot `number % 2` holds publication `number`. The first page has a word for each slot and trainer rank: the
    number of the publication that the rank has written whole, or `UNFINISHED`."""

    def __init__(self, descriptor: int, *, writable: bool) -> None:
        self._descriptor = descriptor
        length = os.fstat(descriptor).st_size
        self._size = (length - PAGE) // 2
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        self._bytes = memoryview(mmap.mmap(descriptor, length, access=access))
        self._words = self._bytes[:PAGE].cast("q")
        self.path = f"/proc/{os.getpid()}/fd/{descriptor}"

    @classmethod
    def create(cls, size: int) -> Self:
        """Two slots of at least `size` bytes each. Raises OSError where there is no room for them."""
        descriptor = os.memfd_create("rlaxes-weights")
        os.posix_fallocate(descriptor, 0, PAGE + 2 * (-(-size // PAGE) * PAGE))
        slots = cls(descriptor, writable=True)
        slots._words[:] = memoryview(b"\xff" * PAGE).cast("q")
        return slots

    @classmethod
    def open(cls, path: str, *, writable: bool = False) -> Self:
        """The slots that another process made, by its `path`. Raises OSError where they are gone."""
        return cls(os.open(path, os.O_RDWR if writable else os.O_RDONLY), writable=writable)

    def slot(self, number: int) -> memoryview:
        """The bytes of a publication."""
        start = PAGE + number % 2 * self._size
        return self._bytes[start : start + self._size]

    def begin(self, number: int, rank: int) -> None:
        """What the slot held is overwritten from now on."""
        self._words[self._word(number, rank)] = UNFINISHED

    def finish(self, number: int, rank: int) -> None:
        """This rank's share of the publication is whole."""
        self._words[self._word(number, rank)] = number

    def holds(self, number: int, ranks: int) -> bool:
        """Whether every rank has written its share of the publication, and none has begun the next one."""
        first = self._word(number, 0)
        return all(word == number for word in self._words[first : first + ranks])

    def close(self) -> None:
        """Forget the memory; it lives on while another process or a tensor has it mapped."""
        os.close(self._descriptor)

    def _word(self, number: int, rank: int) -> int:
        return number % 2 * MOST_RANKS + rank
