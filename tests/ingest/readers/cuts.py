"""What every reader owes a file that ends anywhere: what is whole reads as it does in the whole file."""

import io
from collections.abc import Iterator

from harness.ingest.reading import Block, Reader

Read = tuple[list[Block], list[tuple[int, str]]]


def read(reader: Reader, data: bytes) -> Read:
    """The blocks of a file and its warnings."""
    warnings: list[tuple[int, str]] = []
    return list(reader.blocks(io.BytesIO(data), lambda *told: warnings.append(told))), warnings


def invented(reader: Reader, data: bytes, at: int, sums: tuple[str, ...] = ()) -> Iterator[tuple[int, str, float]]:
    """Line, key and value of every number that a file cut at a byte has and the whole one has not in the same place.

    Args:
        sums: how keys begin whose value grows while their step goes on.
    """
    whole: dict[tuple[int, str, str], set[str]] = {}
    for block in read(reader, data)[0]:
        for key, value in block.values.items():
            whole.setdefault((block.line, block.scope, key), set()).add(repr(value))
    for block in read(reader, data[:at])[0]:
        for key, value in block.values.items():
            known = whole.get((block.line, block.scope, key), set())
            if repr(value) not in known and not (known and key.startswith(sums or ("\0",))):
                yield block.line, key, value
