"""A table of metrics of SkyRL as CSV: a row a step, a column a key, as runs are published with."""

import csv
import io
from collections.abc import Iterator
from typing import BinaryIO

from harness.ingest.clean import lines
from harness.ingest.python_dict import number_of
from harness.ingest.reading import Block, Recognised, Warn
from harness.ingest.told import Told

OWN = ("async/", "policy/", "generate/", "timing/", "trainer/", "reward/")
LEAST_OWN = 5
STEPS = ("trainer/global_step", "global_step")
RUN = "log_file"
"""The column that tells several runs in one table apart."""


class SkyRlCsv:
    """Rows of a CSV whose head has keys of SkyRL's trackers."""

    framework, shape = "skyrl", "table of metrics"

    def recognises(self, head: bytes, name: str) -> Recognised | None:
        """By the first line: five keys of SkyRL's own, a comma between them."""
        first = head.lstrip(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode("utf-8", "replace")
        columns = _cells(first.strip())
        own = [key for key in columns if key.startswith(OWN)]
        if len(own) < LEAST_OWN or len({key.split("/")[0] for key in own}) < 2:
            return None
        return Recognised(self.framework, self.shape, None, ", ".join(own[:3]))

    def blocks(self, stream: BinaryIO, warn: Warn) -> Iterator[Block]:
        """A block a row; an empty cell gives nothing, a row that is cut gives what stands before its last comma."""
        columns: list[str] = []
        told = Told(warn)
        for line in lines(stream, warn):
            cells = _cells(line.text)
            if not cells:
                told(line.number, "no row of cells: left out")
                continue
            if not columns:
                columns = [cells[0].lstrip("\ufeff"), *cells[1:]]
                continue
            if len(cells) < len(columns) or line.torn:
                told(line.number, f"{len(cells)} of {len(columns)} cells, or no line end: the last one was left out")
                cells = cells[:-1]
            row = dict(zip(columns, cells, strict=False))
            values = {key: number for key, cell in row.items() if (number := number_of(cell)) is not None}
            step = next((values[key] for key in STEPS if key in values), None)
            at = int(step) if step is not None and step == step // 1 else None
            if values:
                yield Block(at, line.number, "training", values, row.get(RUN, ""))
        told.end()


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(line)), [])
    except csv.Error:
        return []
