"""Files of a run put together: each number once, whichever files have it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.ingest.series import Series
from harness.ingest.staged import StagedFile

BATCH_ROWS = 64 * 1024


@dataclass(frozen=True)
class Stored:
    """A series as a ledger holds it; `role` is empty for what the framework wrote and nothing replaced."""

    series: Series
    role: str = ""

    @property
    def scope(self) -> str:
        """What tells it from another series of the same key, in words; empty where nothing does."""
        kind = "" if self.series.kind == "training" else self.series.kind
        return ", ".join(filter(None, (self.series.scope, kind, self.role)))

    @property
    def trained(self) -> bool:
        """Whether it speaks of training steps, as written, in the attempt that counts."""
        return self.series.kind == "training" and not self.role

    @property
    def name(self) -> str:
        """Its key in the ledger: the native key, after what tells it from another."""
        return f"{self.scope}: {self.series.key}" if self.scope else self.series.key


@dataclass
class JoinedRun:
    """One run, from one file or several.

    Attributes:
        steps: how many training steps it has.
        settings: what its files say of how it was set.
        seams: where it was resumed or began anew.
    """

    framework: str
    version: str | None
    files: Sequence[StagedFile]
    stored: Sequence[Stored]
    steps: int
    settings: dict[str, str]
    seams: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Its numbers: step, number in `stored`, value."""
        for file in self.files:
            yield from pq.ParquetFile(file.cells).iter_batches(BATCH_ROWS, columns=["step", "series", "value"])


def join(files: Sequence[StagedFile], series: Sequence[Series], version: str | None) -> list[JoinedRun]:
    """The runs that the files are of, in the order of their first files."""
    return [
        JoinedRun(
            file.found.framework,
            version or file.found.version,
            [file],
            [Stored(one) for one in series],
            0,
            file.settings,
        )
        for file in files
    ]
