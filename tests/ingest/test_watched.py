"""A file is hashed whole while a reader reads what it wants of it."""

import hashlib
import io

from hypothesis import given
from hypothesis import strategies as st

from harness.ingest.watched import Watched


@given(st.binary(max_size=2000), st.lists(st.integers(0, 300), max_size=8))
def test_all_bytes_count_however_they_are_read(content: bytes, sizes: list[int]) -> None:
    told: list[int] = []
    watched = Watched(io.BytesIO(content), told.append)
    stream = io.BufferedReader(watched, 64)
    assert b"".join(stream.read(size) for size in sizes) == content[: sum(sizes)]
    assert watched.drained() == hashlib.sha256(content).hexdigest()
    assert (watched.bytes, sum(told)) == (len(content), len(content))
