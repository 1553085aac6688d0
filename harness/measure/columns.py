"""Columns of a ledger's Parquet files as numpy arrays, read in pieces of bounded size."""

import mmap
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Array: TypeAlias = npt.NDArray[Any]

TOKENS_A_PIECE = 2_000_000
MOST_ROWS_A_PIECE = 65_536
BUFFER_BYTES = 1 << 20
MISSING = -1
"""Stands for null in integer columns that cannot be negative (versions, steps, times)."""


def pieces(path: Path, columns: Sequence[str], list_column: str) -> Iterator[pa.RecordBatch]:
    """The rows of a file in pieces of about `TOKENS_A_PIECE` values of `list_column`, only `columns` of them."""
    file = pq.ParquetFile(path, buffer_size=BUFFER_BYTES, pre_buffer=False)
    rows = file.metadata.num_rows
    leaf = next(i for i, name in enumerate(_leaves(file)) if name == list_column or name.startswith(f"{list_column}."))
    tokens = sum(file.metadata.row_group(group).column(leaf).num_values for group in range(file.num_row_groups))
    size = min(MOST_ROWS_A_PIECE, max(1, TOKENS_A_PIECE * rows // max(1, tokens)))
    yield from file.iter_batches(batch_size=size, columns=list(columns), use_threads=False)
    if rows == 0:  # one empty piece, so that columns without rows still have their types
        yield pa.RecordBatch.from_pylist([], schema=file.schema_arrow)


def _leaves(file: pq.ParquetFile) -> list[str]:
    return [file.schema.column(number).path for number in range(len(file.schema))]


def integers(column: Any, dtype: Any = np.int64) -> Array:
    """An integer or boolean column, null as `MISSING`."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    filled = pc.fill_null(column, MISSING) if column.null_count else column
    array: Array = filled.to_numpy(zero_copy_only=False) if isinstance(filled, pa.Array) else filled.to_numpy()
    return array.astype(dtype)


def floats(column: Any) -> Array:
    """A column of numbers as float64, null as NaN."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    array: Array = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return array


def codes(path: Path, column: str) -> tuple[Array, list[str]]:
    """A text column as int32 codes (null: `MISSING`), and the texts they stand for."""
    whole = pq.read_table(path, columns=[column], use_threads=False)[column]
    encoded = whole.dictionary_encode().unify_dictionaries()
    if not encoded.num_chunks:
        return np.empty(0, np.int32), []
    numbers = np.concatenate([integers(chunk.indices, np.int32) for chunk in encoded.chunks])
    return numbers, encoded.chunk(0).dictionary.to_pylist()


def flat_numbers(column: Any, dtype: Any) -> Array:
    """The elements of a list column, end to end; null elements of a float column as NaN, null lists as empty."""
    array: Array = column.flatten().to_numpy(zero_copy_only=False)
    return array.astype(dtype, copy=False)


def lengths(column: Any) -> Array:
    """The length of each list; a null list has 0."""
    return integers(pc.fill_null(pc.list_value_length(column), 0))


def starts_of(counts: Array) -> Array:
    """Where each of several runs of these lengths begins, laid end to end."""
    ends = np.cumsum(counts, dtype=np.int64)
    return ends - counts


def by_run(operation: Any, values: Array, counts: Array, empty: float) -> Array:
    """Reduce (`np.add`, `np.maximum`) each run of `values`; runs of length 0 get `empty`."""
    out: Array = np.full(len(counts), empty, dtype=values.dtype)
    full = counts > 0
    if full.any():
        out[full] = operation.reduceat(values, starts_of(counts)[full])
    return out


def quantiles_by_code(code: Array, values: Array, *shares: float) -> list[Array]:
    """Quantiles of the values of each code, interpolated linearly, in the order of the codes that occur."""
    order = np.lexsort((values, code))
    ordered = values[order].astype(np.float64)
    _, counts = np.unique(code, return_counts=True)
    out = []
    for share in shares:
        place = starts_of(counts) + share * (counts - 1)
        low = np.floor(place).astype(np.int64)
        high = np.ceil(place).astype(np.int64)
        out.append(ordered[low] + (place - low) * (ordered[high] - ordered[low]))
    return out


def log_sums(values: Array, counts: Array) -> Array:
    """`log sum exp` of each run of float64 values, without overflow; -inf for a run without any."""
    return log_sums_twice(values, counts)[0]


def log_sums_twice(values: Array, counts: Array) -> tuple[Array, Array]:
    """`log sum exp(x)` and `log sum exp(2 x)` of each run, from one exponential a value."""
    top = by_run(np.maximum, values, counts, -np.inf)
    base = np.where(np.isfinite(top), top, 0.0)
    weights = np.exp(values - np.repeat(base, counts))
    with np.errstate(divide="ignore"):
        once: Array = base + np.log(by_run(np.add, weights, counts, 0.0))
        twice: Array = 2 * base + np.log(by_run(np.add, weights * weights, counts, 0.0))
    return once, twice


class Scratch:
    """A float32 array of any length in an unnamed temporary file: written once from start to end, then gathered from.

    The pages of a mapped file would count as ours until the kernel wants them back, so each gather gives them back.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives and dies with this object
        self._length = 0
        self._map: mmap.mmap | None = None

    def append(self, values: Array) -> None:
        """Add values at the end."""
        self._file.write(np.ascontiguousarray(values, dtype=np.float32).tobytes())
        self._length += len(values)

    def gather(self, starts: Array, counts: Array) -> Array:
        """The runs that begin at `starts` and are `counts` long, end to end."""
        if not counts.sum():
            return np.empty(0, np.float32)
        mapped = self._mapped()
        view: Array = np.frombuffer(mapped, np.float32)
        if np.array_equal(starts[1:], starts[:-1] + counts[:-1]):
            out: Array = view[starts[0] : starts[-1] + counts[-1]].copy()
        else:
            out = view[np.repeat(starts - starts_of(counts), counts) + np.arange(counts.sum())]
        mapped.madvise(mmap.MADV_DONTNEED)
        return out

    def _mapped(self) -> mmap.mmap:
        if self._map is None:
            self._file.flush()
            self._map = mmap.mmap(self._file.fileno(), self._length * 4, access=mmap.ACCESS_READ)
        return self._map
