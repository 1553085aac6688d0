"""A foreign log set aside on disk, one row a number, while it is read: memory does not grow with the file."""

from array import array
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from harness.ingest.attempts import Attempts
from harness.ingest.reading import Block
from harness.ingest.series import SeriesBook

CELLS = pa.schema([("step", pa.int64()), ("attempt", pa.int32()), ("series", pa.int32()), ("value", pa.float64())])
"""`attempt` counts from 0 in each scope of the file; `series` is a number of the `SeriesBook`."""
FLUSH_VALUES = 128 * 1024
LARGEST_STEP = 2**53
NO_STEP = -(2**62)


class Stage:
    """Takes the blocks of one file, in their order, and writes their numbers to a Parquet file."""

    def __init__(self, path: Path, book: SeriesBook) -> None:
        self.path, self.attempts = path, Attempts()
        self.values = self.left_out = 0
        self.series: set[int] = set()
        self._book = book
        self._writer = pq.ParquetWriter(path, CELLS, compression="zstd", compression_level=1)
        self._empty()

    def add(self, block: Block) -> None:
        """Take the numbers of a block in."""
        series = self._book.numbers(block)
        if -1 in series or (block.step is not None and abs(block.step) > LARGEST_STEP):
            self.left_out += 1
            return
        self._steps.append(NO_STEP if block.step is None else block.step)
        self._attempts.append(self.attempts.number_of(block, series))
        self._counts.append(len(series))
        self._series.extend(series)
        self._values.extend(block.values.values())
        if len(self._values) >= FLUSH_VALUES:
            self._flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what is left, and end the file."""
        self._flush()
        self._writer.close()

    def _empty(self) -> None:
        self._steps, self._attempts, self._counts = array("q"), array("i"), array("q")
        self._series, self._values = array("i"), array("d")

    def _flush(self) -> None:
        self.values += len(self._values)
        self.series.update(np.flatnonzero(np.bincount(self._series)).tolist())
        counts = np.asarray(self._counts)
        steps: npt.NDArray[np.int64] = np.repeat(np.asarray(self._steps), counts)
        columns = [
            pa.array(steps, mask=steps == NO_STEP),
            pa.array(np.repeat(np.asarray(self._attempts), counts)),
            pa.array(np.asarray(self._series)),
            pa.array(np.asarray(self._values)),
        ]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=CELLS))
        self._empty()
