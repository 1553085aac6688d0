"""Questions about the numbers that files set aside, asked of DuckDB so that they never lie in memory together."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb
import pyarrow as pa

MEMORY = "96MB"
SAMPLE = 200_000
"""About so many cells of a file are compared with those of another: enough to tell two runs apart."""
SAME_PRINTED = (
    "(a.value = b.value or abs(a.value - b.value) <= greatest(1e-3 * greatest(abs(a.value), abs(b.value)), 5.1e-4))"
)
"""One number printed with three decimals or three digits, and whole elsewhere. NaN is NaN."""
BATCH_ROWS = 64 * 1024


@dataclass(frozen=True)
class Agreement:
    """Of the cells that two files both have: how many, how many say the same, and how many of these can tell runs
    apart, being no whole numbers (a step, an epoch, a count are alike in any two runs)."""

    common: int
    same: int
    telling: int


class Cells:
    """A connection with a small memory, which spills into a folder."""

    def __init__(self, room: Path) -> None:
        self._connection = duckdb.connect(
            config={"memory_limit": MEMORY, "temp_directory": str(room / "spill"), "threads": 1}
        )
        self._connection.execute("set enable_progress_bar = false")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def agreement(self, one: Path, other: Path, values: int) -> Agreement:
        """How far two files agree, by step and series, over a sample of the steps of the larger; in a step that a file
        gives several times, any of them may agree.

        Args:
            values: how many numbers the larger has.
        """
        every = max(1, values // SAMPLE)
        query = f"""
            select count(*), count(*) filter (same), count(*) filter (same and not whole) from (
                select bool_or({SAME_PRINTED}) as same,
                       bool_and(isfinite(a.value) and a.value = round(a.value)) as whole
                from read_parquet($one) a join read_parquet($other) b using (series, step)
                where step % {every} = 0 group by series, step)"""
        row = self._connection.execute(query, {"one": str(one), "other": str(other)}).fetchall()[0]
        return Agreement(*row)

    def agreement_in_order(self, one: Path, other: Path) -> Agreement:
        """The same for a file that names no steps: the first entry of a series against the first, and so on."""
        numbered = "select series, value, row_number() over (partition by series order by file_row_number) as nth from"
        query = f"""
            select count(*), count(*) filter ({SAME_PRINTED}),
                   count(*) filter ({SAME_PRINTED} and a.value != round(a.value))
            from ({numbered} read_parquet($one, file_row_number = true)) a
            join ({numbered} read_parquet($other, file_row_number = true)) b using (series, nth)"""
        row = self._connection.execute(query, {"one": str(one), "other": str(other)}).fetchall()[0]
        return Agreement(*row)

    def digits(self, path: Path) -> float:
        """How long its numbers are when printed, on average: of two files that agree, the longer has not rounded."""
        query = "select avg(length(cast(value as varchar))) from (from read_parquet($path) limit 20000)"
        return float(self._connection.execute(query, {"path": str(path)}).fetchall()[0][0] or 0.0)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """All rows of an answer that is small."""
        return self._connection.execute(query).fetchall()

    def batches(self, query: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of an answer that may be large, a piece at a time."""
        for batch in self._connection.sql(query).to_arrow_reader(BATCH_ROWS):
            yield batch.cast(schema)

    @staticmethod
    def quoted(path: Path) -> str:
        """A path as a literal of SQL."""
        return "'" + str(path).replace("'", "''") + "'"
